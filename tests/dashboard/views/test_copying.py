"""Looks, writes, matters: the tab of a decoder on Roles."""

from reading import said, sent

from attention_sieve.dashboard.views.roles import copying_wording as wording

TEXTS = "The dog saw the dog that the cat saw.\nA stray cat chased a stray dog and the stray cat ran."


def opened(app, checkpoint):
    return app("roles", checkpoint=checkpoint, corpus_text=TEXTS, details=wording.TITLE)


def test_a_decoder_is_tested_for_looking_and_writing_and_on_request_for_mattering_and_by_published_scores(app, small):
    at = opened(app, small("llama", "CausalLM"))
    assert not at.error
    assert sent(at, wording.OVERLAPS)["roles"] == ["looks", "writes"]
    assert any("Of 8 heads" in each.value and "both:" in each.value for each in at.markdown)
    at.toggle(key="matters").set_value(True).run()
    assert sent(at, wording.OVERLAPS)["roles"] == ["looks", "writes", "matters"]
    assert any("all three:" in each.value and "nats a token" in each.value for each in at.markdown)
    at.number_input(key="copying times").set_value(2.0).run()
    assert any("raise the token looked at 2 times as much" in each.value for each in at.markdown)
    for name, says in (("“abs” (TransformerLens)", "One less the distance"), ("stripe (ARENA)", "commonest distance")):
        at.selectbox(key="detector").set_value(name).run()
        assert any(says in each.value for each in at.caption)
        assert any("look (at least 0.4)" in each.value for each in at.markdown)


def test_the_published_share_of_sinks_is_given_on_request(app, small):
    checkpoint = small("llama", "CausalLM", max_position_embeddings=200)
    at = app("roles", checkpoint=checkpoint, corpus_text=TEXTS.replace("\n", " ") * 2)
    at.toggle(key="sink share").set_value(True).run()
    assert not at.error
    assert any("of heads are attention sinks, mean over" in each.value for each in at.markdown)
    at.number_input(key="sinks tokens").set_value(1).run()
    assert said(at) == ["tokens is 1. Choose a whole number from 2 to 100,000."]
    at.number_input(key="sinks tokens").set_value(100_000).run()
    assert said(at)[0].startswith("No text has 100,000 tokens")


def test_an_encoder_has_no_such_tab(app, small):
    at = opened(app, small("bert"))
    assert wording.TITLE not in [tab.label for tab in at.tabs]
