"""What the network learns from: what customers of a shop ask, put together from actions, things and forms.

The same question has thousands of phrasings here: an action has several verbs, a thing several names, and a question
several forms. The network sees two phrasings of one question at a time and learns that they belong together; nobody
tells it which words are synonyms.

Some of it never reaches the training: whole questions (`HELD_OUT`), although their action and their thing are known
from others, and all sentences of `held_out.tsv`, which were written by hand.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple


class Question(NamedTuple):
    """What is meant, however it is said."""

    action: str
    thing: str


#: Verbs, and where the thing stands.
VERBS: dict[str, Sequence[str]] = {
    "change": ("change {}", "update {}", "edit {}", "modify {}", "alter {}", "correct {}", "switch {}"),
    "cancel": ("cancel {}", "stop {}", "end {}", "call {} off", "terminate {}", "quit {}"),
    "delete": ("delete {}", "remove {}", "erase {}", "get rid of {}", "wipe {}"),
    "view": ("see {}", "view {}", "look at {}", "show {}", "open {}", "display {}", "read {}"),
    "download": ("download {}", "save {} as a file", "export {}", "print {}", "get a copy of {}"),
    "recover": ("reset {}", "recover {}", "restore {}", "get {} back", "regain {}"),
    "add": ("add {}", "enter {}", "register {}", "set up {}", "create {}"),
    "return": ("return {}", "send {} back", "give {} back", "exchange {}", "bring {} back"),
    "track": ("track {}", "follow {}", "trace {}", "locate {}", "find out where {} is"),
    "pay": ("pay {}", "pay for {}", "settle {}", "pay the money for {}"),
    "use": ("use {}", "apply {}", "redeem {}", "spend {}", "cash in {}"),
    "extend": ("extend {}", "renew {}", "prolong {}", "keep {} for longer"),
    "share": ("share {}", "give {} to a friend", "pass {} on", "hand {} to someone else"),
}

#: Sentences that say the same without such a verb.
SENTENCES: dict[str, Sequence[str]] = {
    "change": ("{} is not right any more", "{} is wrong", "{} has changed", "i have a new one instead of {}"),
    "cancel": ("i do not want {} any longer", "i no longer need {}"),
    "delete": ("{} should disappear", "take {} out of your records"),
    "recover": ("i forgot {}", "i lost {}", "i do not remember {}", "{} is gone"),
    "return": ("i do not like {}", "{} does not fit", "{} is broken, take it back"),
    "track": ("where is {}", "when will {} be here", "has {} been sent yet", "{} has not arrived", "how late is {}"),
    "pay": ("what do i owe for {}", "where does the money for {} go"),
    "price": (
        "how much is {}",
        "what does {} cost",
        "what is the price of {}",
        "how expensive is {}",
        "is {} free of charge",
        "what will i be charged for {}",
    ),
    "extend": ("{} runs out soon", "{} is about to expire", "how long is {} valid"),
}

THINGS: dict[str, Sequence[str]] = {
    "password": (
        "my password",
        "my passphrase",
        "the password of my login",
        "my secret word",
        "the code i sign in with",
    ),
    "address": ("my address", "my delivery address", "the place you ship to", "my street and town", "where i live"),
    "order": ("my order", "my purchase", "what i ordered", "what i bought", "the things that i ordered"),
    "parcel": ("my parcel", "my package", "my delivery", "my shipment", "the box you sent"),
    "subscription": ("my subscription", "my membership", "my plan", "my monthly plan", "the plan i am on"),
    "invoice": ("my invoice", "my bill", "my receipt", "the bill you sent me", "the statement of charges"),
    "card": ("my credit card", "my bank card", "my payment card", "the card i pay with", "my debit card"),
    "account": ("my account", "my profile", "my user account", "my customer account"),
    "phone": ("my phone number", "my mobile number", "my telephone number", "the number you call me on"),
    "email": ("my email address", "my e-mail", "my mail account", "the mailbox you write to"),
    "voucher": ("my voucher", "my gift card", "my coupon", "my discount code", "my promo code"),
    "appointment": ("my appointment", "my booking", "my reservation", "the date we agreed on"),
    "review": ("my review", "my rating", "my comment", "my feedback", "what i wrote about a product"),
    "warranty": ("my warranty", "my guarantee", "the guarantee on my device", "my cover against damage"),
    "newsletter": ("your newsletter", "your advertising", "your marketing mails", "your promotional messages"),
    "photo": ("my photo", "my picture", "my portrait", "my avatar"),
}

#: `{}` is what is to be done: "change my password".
FORMS: Sequence[str] = (
    "how do i {}",
    "how can i {}",
    "how does one {}",
    "what do i do to {}",
    "what must i do to {}",
    "is there a way to {}",
    "is it possible to {}",
    "i want to {}",
    "i would like to {}",
    "i need to {}",
    "i am trying to {}",
    "please help me {}",
    "can you {} for me",
    "can you tell me how to {}",
    "where can i {}",
    "where do i go to {}",
    "what are the steps to {}",
    "i cannot work out how to {}",
    "am i able to {}",
    "may i {}",
    "{}",
)
#: The same with "changing my password".
FORMS_OF_DOING: Sequence[str] = (
    "i need help with {}",
    "what is the way of {}",
    "i have a question about {}",
    "i am interested in {}",
    "who helps me with {}",
    "{} does not work",
    "i have trouble {}",
)
BEFORE: Sequence[str] = ("",) * 6 + ("hello, ", "hi, ", "sorry, ", "excuse me, ", "good morning, ", "one question: ")
AFTER: Sequence[str] = ("",) * 6 + (", please", ", thanks", " today", " online", " in the app", " on your site", " now")

#: Questions that no training sees, in any form.
HELD_OUT: frozenset[Question] = frozenset(
    Question(*pair)
    for pair in (
        ("change", "phone"),
        ("cancel", "appointment"),
        ("download", "invoice"),
        ("return", "order"),
        ("delete", "review"),
        ("extend", "warranty"),
        ("use", "voucher"),
        ("price", "subscription"),
        ("view", "card"),
        ("recover", "email"),
        ("share", "photo"),
        ("track", "invoice"),
    )
)

_DOING = {
    "get": "getting",
    "set": "setting",
    "cancel": "cancelling",
    "stop": "stopping",
    "quit": "quitting",
    "see": "seeing",
}


def questions() -> list[Question]:
    """All of them, those that are held out among them."""
    return [Question(action, thing) for action in dict.fromkeys([*VERBS, *SENTENCES]) for thing in THINGS]


def phrase(question: Question, dice: random.Random) -> str:
    """One way to ask it, as people type: small letters, with or without a question mark."""
    thing = dice.choice(THINGS[question.thing])
    verbs, sentences = VERBS.get(question.action, ()), SENTENCES.get(question.action, ())
    if verbs and (not sentences or dice.random() < 0.75):
        said = _with_verb(dice.choice(verbs), thing, dice)
    else:
        said = dice.choice(sentences).format(thing)
    return dice.choice(BEFORE) + said + dice.choice(AFTER) + dice.choice(("?", "", ".", "?"))


def _with_verb(verb: str, thing: str, dice: random.Random) -> str:
    if dice.random() < 0.25:
        return dice.choice(FORMS_OF_DOING).format(_doing(verb).format(thing))
    return dice.choice(FORMS).format(verb.format(thing))


def _doing(verb: str) -> str:
    """The form of "changing": of the first word."""
    first, _, rest = verb.partition(" ")
    silent = first.endswith("e") and not first.endswith("ee")
    return f"{_DOING.get(first) or (first[:-1] if silent else first) + 'ing'} {rest}"
