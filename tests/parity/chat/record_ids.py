#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ids.json: ids and labels of conversations, made with transformers' apply_chat_template and tokenizers, for the tokenizer that
comes with ctitan and for tests/parity/tokenizer/llama3, with templates of ours. Needs transformers; the test (chat_ids.c) does not.

What a sample is (docs/chat.md): the text without newlines at its end, BOS in front unless the template wrote it, EOS at the end unless
it is there; labels are the ids after the prompt of each assistant turn, up to that turn's end.
"""
import json
import os

import tokenizers
import transformers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
SHIPPED = open(os.path.join(ROOT, "share/ctitan/tokenizer/chat_template.jinja"), encoding="utf-8").read()
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TURNS = ("{{ bos_token }}{% for m in messages %}{{ '\\n' if not loop.first }}[{{ m['role'] | upper }}] {{ m['content'].strip() }}"
         "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}\n[ASSISTANT]{% endif %}")
U, A, S = "user", "assistant", "system"


def chat(*turns):
    return [{"role": r, "content": c} for r, c in turns]


CHATS = [chat((U, "What is two and two?"), (A, "Four.")),
         chat((U, "  Blanks \n\n"), (A, "\n kept? \n\n")),
         chat((U, "naïve ünïcode 漢字 😀"), (A, "Ça va — 東京\u2003!")),
         chat((U, ""), (A, "")),
         chat((U, "1234567"), (A, "12 345 <|end_of_text|>")),
         chat((S, "Be brief."), (U, "One?"), (A, "Two."), (U, "Three?"), (A, "Four, five.\n")),
         chat((U, "One?"), (A, "Two."), (U, "Three?"), (A, "Four."), (U, "Five?"), (A, "Six.")),
         chat((S, "Only a system and an answer."), (A, "Yes.")),
         chat((U, "a"), (A, "b"), (A, "c"))]


def sample(tok, messages, template):
    def render(part, prompt):
        return tok.apply_chat_template(part, chat_template=template, tokenize=False, add_generation_prompt=prompt)

    def encode(text):
        ids = tok(text, add_special_tokens=False)["input_ids"]
        return ids if text.startswith(tok.bos_token) else [tok.bos_token_id] + ids

    whole = render(messages, False).rstrip("\n")
    ids = encode(whole)
    if ids[-1] != tok.eos_token_id:
        ids.append(tok.eos_token_id)
    labels = [-100] * len(ids)
    for k, m in enumerate(messages):
        if m["role"] != A:
            continue
        prompt = render(messages[:k], True)
        begin, end = len(encode(prompt)), len(ids)
        known = [prompt]
        if k + 1 < len(messages):
            known.append(render(messages[:k + 1], False).rstrip("\n"))
            end = len(encode(known[-1]))
        if len(messages) != 2 and any(not whole.startswith(t) or encode(t) != ids[:len(encode(t))] for t in known):
            return None
        labels[begin:end] = ids[begin:end]
    return {"ids": ids, "labels": labels}


def main():
    cases = []
    for name, folder in (("shipped", "share/ctitan/tokenizer"), ("llama3", "tests/parity/tokenizer/llama3")):
        tok = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(ROOT, folder, "tokenizer.json"), bos_token="<|begin_of_text|>",
                                                   eos_token="<|end_of_text|>", clean_up_tokenization_spaces=False)
        for template in (SHIPPED, PLAIN, TURNS):
            for messages in CHATS:
                cases.append({"folder": folder, "template": template, "messages": messages, "sample": sample(tok, messages, template)})
    with open(os.path.join(HERE, "ids.json"), "w", encoding="utf-8") as f:
        f.write('{"made with": "transformers %s, tokenizers %s",\n "cases": [\n' % (transformers.__version__, tokenizers.__version__))
        f.write(",\n".join("  " + json.dumps(c) for c in cases))
        f.write("\n ]}\n")
    print(len(cases), "cases,", sum(c["sample"] is None for c in cases), "refused")


main()
