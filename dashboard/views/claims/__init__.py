"""Claims: do the heads that somebody names have the role that somebody says?"""
