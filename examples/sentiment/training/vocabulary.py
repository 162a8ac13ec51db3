"""The WordPiece vocabulary, trained on the texts themselves, and how a text becomes tokens, as a tokenizer.json."""

import json

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

SIZE = 8000
LONGEST = 128
PAD, UNK, CLS, SEP = range(4)

# SST-2 writes "do n't", "it 's" and "-lrb-" where people write "don't", "it's" and "(".
AS_PEOPLE_WRITE = {f" {ending}": ending for ending in ["n't", "'s", "'re", "'ve", "'ll", "'d", "'m"]} | {
    "-lrb-": "(",
    "-rrb-": ")",
    "\\/": "/",
}


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def train(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.BertNormalizer(lowercase=True, strip_accents=True)]
        + [normalizers.Replace(theirs, ours) for theirs, ours in AS_PEOPLE_WRITE.items()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    # The trainer numbers what continues a word in the order of a hash table, which differs every time, and then decides by
    # numbers between pairs that are equally frequent. Numbers that are given as special tokens stay the same.
    characters = sorted(set("".join(tokenizer.normalizer.normalize_str(text) for text in texts)) - set(" "))
    trainer = trainers.WordPieceTrainer(
        vocab_size=SIZE,
        special_tokens=SPECIAL + [f"##{character}" for character in characters],
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] in SPECIAL]
    tokenizer = Tokenizer.from_str(json.dumps(document))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    tokenizer.enable_truncation(LONGEST)
    return tokenizer


def encode(tokenizer: Tokenizer, texts: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]
