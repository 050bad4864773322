"""What pages say of a head's attention beside that of other words."""

import numpy as np
from made_attention import to_no_antecedent

from attention_sieve.core.coreference.accuracy import MentionChoices, coreference_scores
from attention_sieve.core.coreference.mentions import Mention, MentionText
from attention_sieve.core.statistics.cases import Joined, key_matched
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.figures.coreference import FROM_EVERYWHERE, TIMES_OTHERS, antecedent_table
from attention_sieve.dashboard.views.grammar import wording
from attention_sieve.dashboard.wording import beside_others


def test_a_tooltip_compares_the_attention_and_marks_heads_that_look_there_from_everywhere():
    to_right = np.array([[[0.3, 0.4], [np.nan, np.nan]]])
    control = key_matched(Joined(to_right=to_right, from_others=to_right * 0 + 0.2, unit=np.arange(2)), 0.05)
    details = dict(wording.control_details(control))
    assert details["attention to the right word"] == [["35.0%", wording.NOT_COMPARED]]
    assert details["from other words to the same word"] == [["20.0%", wording.NOT_COMPARED]]
    assert details["looks there from everywhere"] == [["yes", "no"]]


def test_times_are_said_as_finely_as_they_need():
    assert beside_others(0.27, 0.01) == "27 times what other words give to the same word"
    assert beside_others(0.06, 0.04) == "1.5 times what other words give to the same word"
    assert beside_others(0.1, 0) == "something that other words do not give to the same word"
    assert beside_others(np.nan, np.nan) == ""


def scores_of(*of_others):
    """Scores of a head that is right in all of 12 documents and gives the antecedent 0.3; what other words give."""
    mentions = tuple(Mention(place, place + 1, place, "pronoun", "a") for place in (0, 2))
    texts, choices = [], []
    for number in range(12):
        texts.append(MentionText(str(number), Text(("it , it",)), ((0, 2), (3, 4), (5, 7)), mentions, (3,)))
        chosen = np.array([[[-1, 0]] * len(of_others)])
        noise = 0.01 * (number % 3)
        attention = np.array([[[np.nan, other + noise] for other in of_others]])
        arrays = to_no_antecedent(chosen) | {"to_antecedents": attention * 0 + 0.3, "from_others": attention}
        choices.append(MentionChoices(mentions=chosen, words=chosen, is_read=np.ones(2, bool), **arrays))
    return coreference_scores(texts, choices)


def test_of_equally_accurate_heads_the_one_is_best_that_other_words_do_not_share():
    scores = scores_of(0.25, 0.05)
    assert scores.best == (0, 1)
    assert scores.judgement.held_out.heads == ((0, 1), (0, 1))
    table = antecedent_table(scores, (0, 0)).set_index("who")
    assert table[FROM_EVERYWHERE].dropna().tolist() == [False, False, True]
    assert table[TIMES_OTHERS].dropna().round(1).tolist() == [5.0, 5.0, 1.2]
    assert (
        wording.beside(scores.judgement.best_key_matched, "The antecedents get")
        == "The antecedents get 5.0 times what other words give to the same word."
    )


def test_where_every_head_looks_there_from_everywhere_the_page_says_so():
    assert wording.beside(scores_of(0.25).judgement.best_key_matched, "The antecedents get") == (
        "Such a head **looks there from everywhere**: 1.2 times what other words give to the same word."
    )
