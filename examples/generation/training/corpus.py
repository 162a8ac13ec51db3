"""Stories that the network learns from. A grammar makes them, so there is no text to download, and no end of them."""

import numpy as np

# A token is an index of this text. The first character separates stories.
CHARACTERS = "\n ,.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TOKENS = {character: token for token, character in enumerate(CHARACTERS)}

NAMES = ["Ada", "Bruno", "Clara", "Dario", "Edith", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Klara", "Luis"]
PEOPLE = ["keeper", "sailor", "baker", "painter", "doctor", "teacher", "fisher", "captain"]
ANIMALS = ["cat", "dog", "gull", "fox", "goat", "heron"]
PLACES = ["tower", "harbour", "island", "village", "bridge", "market", "forest", "river"]
THINGS = ["lamp", "book", "letter", "boat", "clock", "key", "map", "bell"]
KINDS = ["old", "small", "quiet", "bright", "broken", "green", "heavy", "strange"]
TIMES = ["In the morning", "In the night", "Before the storm", "After the rain", "One winter", "On a clear day"]
WEATHER = ["the wind turned", "the rain stopped", "the sea was calm", "the fog came", "the sun went down"]


def story(random: np.random.Generator) -> str:
    """A few sentences about one person, one animal and one thing, whose names stay the same."""

    def one(words: list[str]) -> str:
        return words[random.integers(len(words))]

    name, person, animal, place, thing, kind = map(one, [NAMES, PEOPLE, ANIMALS, PLACES, THINGS, KINDS])
    sentences = [
        f"{name} was a {person} who lived near the {place}.",
        f"{one(TIMES)} the {person} found a {kind} {thing}.",
    ]
    middle = [
        f"The {thing} was {kind}, but {name} liked it.",
        f"A {animal} slept beside the {thing}.",
        f"{name} carried the {thing} to the {place}.",
        f"{one(TIMES)} {one(WEATHER)}, and the {animal} came to the {place}.",
        f"The {animal} looked at {name}, and {name} looked at the {animal}.",
        f"Nobody at the {place} had seen the {thing} before.",
    ]
    random.shuffle(middle)
    sentences += middle[: random.integers(2, 5)]
    sentences.append(
        one(
            [
                f"From that day the {person} and the {animal} were friends.",
                f"Then {one(WEATHER)}, and {name} went home with the {thing}.",
                f"So the {kind} {thing} stayed at the {place}.",
            ]
        )
    )
    return " ".join(sentences)


def tokens(random: np.random.Generator, count: int) -> np.ndarray:
    """So many tokens of stories, each between newlines."""
    text = "\n"
    while len(text) < count:
        text += story(random) + "\n"
    return np.array([TOKENS[character] for character in text[:count]], np.int32)
