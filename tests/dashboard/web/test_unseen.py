"""What is drawn unseen computes, and changes nothing of what the page shows."""

from streamlit.testing.v1 import AppTest


def script():
    import streamlit as st

    from attention_sieve.dashboard.web.unseen import unseen

    seen = st.text_input("Seen", key="shared")
    hidden = st.container()
    try:
        with unseen(), hidden:
            st.session_state["drawn"] = st.text_input("Unseen", value=f"after {seen}", key="other")
            st.text_input("Seen too", key="shared")
            raise ValueError("stopped")
    except ValueError as error:
        st.markdown(f"after it, {error}")


def test_keys_may_be_used_again_and_nothing_is_sent():
    at = AppTest.from_function(script)
    at.run()
    at.text_input(key="shared").set_value("typed").run()
    assert not at.exception
    assert [field.label for field in at.text_input] == ["Seen"]
    assert at.session_state["drawn"] == "after typed"
    assert [text.value for text in at.markdown] == ["after it, stopped"]
