from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openmsmq.model import errors
from openmsmq.model.error_catalogue import CATALOGUE
from openmsmq.model.errors import MsmqError, error_for
from scripts.generate_docs import errors_table, is_failure

PUBLISHED = [
    (int(code, 16), name)
    for code, name in (
        line.split()
        for line in (Path(__file__).parent / "data/error_codes.txt").read_text().splitlines()
    )
]
KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, MsmqError) and kind is not MsmqError
]
codes = st.one_of(st.sampled_from(sorted(CATALOGUE)), st.integers(0, 0xFFFFFFFF))


def test_the_catalogue_has_exactly_the_published_codes_in_their_order():
    assert [(code, entry.name) for code, entry in CATALOGUE.items()] == PUBLISHED


def test_the_values_that_other_documents_print_wrongly_are_the_published_ones():
    by_name = {entry.name: code for code, entry in CATALOGUE.items()}
    assert by_name["MQ_ERROR_MESSAGE_NOT_FOUND"] == 0xC00E0088
    assert by_name["MQ_ERROR_LABEL_BUFFER_TOO_SMALL"] == 0xC00E005E
    assert by_name["MQ_ERROR_OPERATION_CANCELLED"] == 0xC00E0008
    assert by_name["MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL"] == 0xC00E0063


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.name)
def test_texts_are_sentences_that_fit_together(entry):
    assert entry.meaning[0].isupper()
    assert not entry.meaning.endswith(".")
    assert entry.advice == "" or (entry.advice[0].isupper() and entry.advice.endswith("."))
    assert "|" not in entry.meaning + entry.advice


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_class_stands_for_the_code_that_its_documentation_names(kind):
    assert kind.__doc__ == CATALOGUE[kind.code].name
    assert error_for(kind.code) is kind
    assert is_failure(kind.code)


@given(codes, st.text())
def test_every_code_gives_an_error_that_carries_it_and_survives_pickling(code, detail):
    error = MsmqError.from_code(code, detail)
    copy = pickle.loads(pickle.dumps(error))
    for one in (error, copy):
        assert type(one) is error_for(code)
        assert (one.code, one.detail) == (code, detail)
        assert str(one) == str(error)


def test_an_error_says_what_where_and_what_to_do():
    error = errors.QueueNotFound(r"private$\orders on ALPHA")
    assert error.name == "MQ_ERROR_QUEUE_NOT_FOUND"
    assert str(error) == (
        r"There is no such queue: private$\orders on ALPHA. "
        "Create it first, or check its name and the queue manager asked. "
        "(MQ_ERROR_QUEUE_NOT_FOUND)"
    )


def test_an_error_without_detail_or_advice_is_one_sentence():
    assert str(MsmqError.from_code(0xC00E0092)) == (
        "The property is not well-formed XML. (MQ_ERROR_BAD_XML_FORMAT)"
    )


def test_a_detail_that_ends_with_a_full_stop_gets_no_second_one():
    assert "body.. " not in str(errors.IllegalPropertyValue("too large a body."))
    assert "body. " in str(errors.IllegalPropertyValue("too large a body."))


def test_a_code_that_is_not_of_msmq_is_shown_as_a_number():
    error = MsmqError.from_code(0xC0000225, "cancel of request 7")
    assert type(error) is MsmqError
    assert error.name == "0xC0000225"
    assert "cancel of request 7" in str(error)
    assert str(error).endswith("(0xC0000225)")


def test_an_application_can_catch_all_errors_by_their_base():
    assert MsmqError("disk on fire").code == 0xC00E0001
    assert issubclass(errors.ReceiveTimeout, MsmqError)
    assert error_for(0xC00E001B) is errors.ReceiveTimeout


def test_success_and_information_are_no_failures():
    failures = {code for code in CATALOGUE if is_failure(code)}
    assert not is_failure(0)
    assert failures == {code for code, name in PUBLISHED if not name.startswith("MQ_INFORMATION")}


def test_the_table_for_the_documents_has_a_row_for_each_code():
    rows = errors_table().splitlines()[2:]
    assert len(rows) == len(CATALOGUE)
    assert all(row.count("|") == 6 for row in rows)
    assert any("`0xC00E001B` | `MQ_ERROR_IO_TIMEOUT` | `ReceiveTimeout`" in row for row in rows)
    assert any("`MQ_ERROR_BAD_XML_FORMAT` | `MsmqError`" in row for row in rows)
    assert any("`MQ_INFORMATION_PROPERTY` |  |" in row for row in rows)
