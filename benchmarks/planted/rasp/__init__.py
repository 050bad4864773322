"""RASP programs that tracr compiles to the weights of a transformer, carried over to plain hosts of transformers.

`compiling` and `programs` run in an environment of their own, which `environment` makes; what they write is read by
`compiled`, without tracr. The programs compute what the cases of InterpBench that have attention compute.
"""
