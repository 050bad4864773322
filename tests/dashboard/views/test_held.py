"""What people hold, in the sidebar: adapters with their base, and texts in other languages."""

from peft import LoraConfig
from reading import told
from small_adapters import LORA, save_adapter
from transformers import AutoModel

from attention_sieve.core.texts.parsers import parser_name


def test_an_adapter_is_opened_with_its_base_which_is_offered_to_compare_with(app, small, tmp_path):
    base = small("bert")
    save_adapter(AutoModel.from_pretrained(base), LoraConfig(**LORA), tmp_path / "lora", base)
    at = app("compare", checkpoint=str(tmp_path / "lora"))
    assert f"LORA adapter of **{base}**" in told(at)
    assert base in at.multiselect("with").options


def test_french_has_samples_of_its_own_and_relations_by_the_french_parser(app, small):
    at = app("grammar", checkpoint=small("bert"), corpus=None, corpus_text=None, **{"text language": "French"})
    assert at.selectbox("corpus").value == "sample texts in French"
    assert parser_name("French") in told(at)
    at.selectbox("text language").set_value("English").run()
    assert at.selectbox("corpus").value == "sample pairs and texts"
    assert parser_name() in told(at)
