"""What only Streamlit knows of a session, asked in a run of the app."""

from streamlit.testing.v1 import AppTest


def script():
    import streamlit as st

    from attention_sieve.dashboard.web.session import (
        has_stepped_back,
        restore_parameters,
        session_id,
        unbound_parameters,
    )

    st.text_input("Held", key="held", bind="query-params")
    st.session_state["told"] = (session_id(), has_stepped_back(), unbound_parameters())
    restore_parameters()


def test_streamlit_tells_the_session_and_which_parameters_no_widget_holds():
    at = AppTest.from_function(script)
    at.query_params["held"], at.query_params["free"] = "a", ["b", "c"]
    at.run()
    assert not at.exception
    session, stepped_back, unbound = at.session_state["told"]
    assert isinstance(session, str)
    assert session
    assert stepped_back is False
    assert unbound == {"free": ["b", "c"]}


def test_outside_of_a_session_nothing_is_told():
    from attention_sieve.dashboard.web.session import has_stepped_back, restore_parameters, session_id

    assert session_id() is None
    assert has_stepped_back() is False
    restore_parameters()


def script_with_a_part_unseen():
    import streamlit as st

    from attention_sieve.dashboard.web.session import unseen

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
    at = AppTest.from_function(script_with_a_part_unseen)
    at.run()
    at.text_input(key="shared").set_value("typed").run()
    assert not at.exception
    assert [field.label for field in at.text_input] == ["Seen"]
    assert at.session_state["drawn"] == "after typed"
    assert [text.value for text in at.markdown] == ["after it, stopped"]
