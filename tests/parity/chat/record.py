#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes recorded.json: templates of ours and what jinja2 makes of them in the environment that transformers sets up for chat
templates (transformers.utils.chat_template_utils). Needs transformers and jinja2; the tests need neither.

    record.py                      writes recorded.json beside this file
    record.py --fuzz PROGRAM N [SEED]
                                   makes N random templates and compares PROGRAM (the built test_parity_chat) with jinja2
    record.py --files PROGRAM FILE...
                                   the same with the template files named and the conversations below
"""
import copy, datetime, json, os, random, subprocess, sys, tempfile
import transformers, jinja2, warnings
from transformers.utils import chat_template_utils as ctu

warnings.simplefilter("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
NOW = datetime.datetime(2024, 7, 26, 15, 4, 5)


class FixedDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


ctu.datetime = FixedDatetime  # what strftime_now asks


def render(text, variables):
    """(output, None) or (None, error)"""
    try:
        return ctu._compile_jinja_template(text).render(**copy.deepcopy(variables)), None
    except Exception as e:  # noqa: BLE001 any failure counts
        return None, type(e).__name__ + ": " + str(e)[:200]


# --- conversations --------------------------------------------------------------------------------------------------

TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather <now> & \"later\" in a place, in °C.",
     "parameters": {"type": "object", "properties": {"place": {"type": "string", "description": "where"},
                                                     "days": {"type": "integer", "default": 3, "enum": [1, 2, 3]},
                                                     "exact": {"type": ["boolean", "null"]}}, "required": ["place"]}}},
    {"type": "function", "function": {"name": "clock", "description": "tells the time", "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"id": "abcdef123", "type": "function", "function": {"name": "weather", "arguments": {"place": "Zürich", "days": 2, "f": 1.5, "n": None}}}
CONVERSATIONS = {
    "two": {"messages": [{"role": "user", "content": "What is two and two?"}, {"role": "assistant", "content": "Four."}]},
    "prompt": {"messages": [{"role": "user", "content": " Say  hello.\n\n"}], "add_generation_prompt": True},
    "system": {"messages": [{"role": "system", "content": "  You count.\n"}, {"role": "user", "content": "One?"},
                            {"role": "assistant", "content": "Two."}, {"role": "user", "content": "Three?"},
                            {"role": "assistant", "content": "Four — naïve ünïcode 漢字 😀"}]},
    "think": {"messages": [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "<think>\nIt is so.\n</think>\n\nBecause."},
                           {"role": "user", "content": "Really?"},
                           {"role": "assistant", "content": "Yes.", "reasoning_content": "I am sure."}]},
    "tools": {"messages": [{"role": "system", "content": "Use tools."}, {"role": "user", "content": "Weather in Zürich?"},
                           {"role": "assistant", "content": "", "tool_calls": [CALL]},
                           {"role": "tool", "name": "weather", "tool_call_id": "abcdef123", "content": "{\"c\": 21}"},
                           {"role": "assistant", "content": "It is 21 °C."}, {"role": "user", "content": "Thanks <b>&</b>"}],
              "tools": TOOLS, "add_generation_prompt": True},
    "tools_none": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
                                {"role": "tool", "name": "weather", "tool_call_id": "abcdef123", "content": "rain"},
                                {"role": "tool", "name": "clock", "tool_call_id": "abcdef124", "content": "noon"},
                                {"role": "assistant", "content": "Rain at noon."}], "tools": TOOLS},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "See"}, {"type": "image"}, {"type": "text", "text": " this"}]},
                           {"role": "assistant", "content": "Seen."}]},
    "wrong": {"messages": [{"role": "assistant", "content": "I speak first."}, {"role": "assistant", "content": "And again."}]},
    "odd": {"messages": [{"role": "robot", "content": "?"}]},
    "empty": {"messages": []},
}
EXTRA = {"bos_token": "<s>", "eos_token": "</s>", "date_string": "1 May 2025"}
for _c in CONVERSATIONS.values():
    for _k in ("tools", "documents"):
        _c.setdefault(_k, None)
    _c.setdefault("add_generation_prompt", False)

# --- templates of ours, in the manner of the families ---------------------------------------------------------------

CHATML = """{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
ZEPHYR = """{% for m in messages %}
{% if m['role'] == 'user' %}
{{ '<|user|>\\n' + m['content'] + eos_token }}
{% elif m.role == 'system' %}
{{ '<|system|>\\n' + m['content'] + eos_token }}
{% elif m['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + m['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""
HEADERS = """{{- bos_token }}
{%- if custom is defined %}{%- set tools = custom %}{%- endif %}
{%- if not in_user is defined %}
    {%- set in_user = true %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}{%- set date_string = strftime_now("%d %b %Y") %}{%- else %}{%- set date_string = "1 Jan 2020" %}{%- endif %}
{%- endif %}
{%- if not tools is defined %}{%- set tools = none %}{%- endif %}
{#- the system message comes out first -#}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<|h|>system<|/h|>\\n\\n" }}
{%- if tools is not none %}{{- "Environment: box\\n" }}{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not in_user %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system }}
{{- "<|eot|>" }}
{%- if in_user and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("No first user message, so no tools there.") }}
    {%- endif %}
    {{- '<|h|>user<|/h|>\\n\\n' -}}
    {{- "Given the functions, answer with a call.\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first + "<|eot|>"}}
{%- endif %}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|h|>' + message['role'] + '<|/h|>\\n\\n'+ message['content'] | trim + '<|eot|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time.") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<|h|>assistant<|/h|>\\n\\n' -}}
        {{- '{"name": "' + call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|h|>ipython<|/h|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|h|>assistant<|/h|>\\n\\n' }}
{%- endif %}
"""
BACKWARDS = """{%- if tools %}
    {{- '<|s|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|e|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|s|>system\\n' + messages[0].content + '<|e|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(open=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.open and message.role == "user" and message.content is string and not(message.content.startswith('<r>') and message.content.endswith('</r>')) %}
        {%- set ns.open = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|s|>' + message.role + '\\n' + content + '<|e|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and reasoning)) %}
            {{- '<|s|>' + message.role + '\\n<think>\\n' + reasoning.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|s|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|e|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|s|>user' }}
        {%- endif %}
        {{- '\\n<r>\\n' }}
        {{- content }}
        {{- '\\n</r>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|e|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|s|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}"""
ONE_LINE = ("{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}"
            "{% set ns = namespace(is_first=false, is_tool=false, out_first=true, system='') %}"
            "{%- for message in messages %}{%- if message['role'] == 'system' %}{% set ns.system = message['content'] %}{%- endif %}{%- endfor %}"
            "{{bos_token}}{{ns.system}}"
            "{%- for message in messages %}"
            "{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}"
            "{%- if message['role'] == 'assistant' and message['content'] is none %}{%- set ns.is_tool = false -%}"
            "{%- for tool in message['tool_calls']%}{%- if not ns.is_first %}"
            "{{'<｜Assistant｜><｜calls▁begin｜><｜call▁begin｜>' + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '\\n' + '```json' + '\\n' + tool['function']['arguments']|tojson + '\\n' + '```' + '<｜call▁end｜>'}}"
            "{%- set ns.is_first = true -%}{%- else %}{{'\\n' + '<｜call▁begin｜>' + tool['type'] + '<｜call▁end｜>'}}{{'<｜calls▁end｜>'}}{%- endif %}{%- endfor %}{%- endif %}"
            "{%- if message['role'] == 'assistant' and message['content'] is not none %}{%- if ns.is_tool %}{{'<｜outs▁end｜>' + message['content'] + '<｜end｜>'}}{%- set ns.is_tool = false -%}"
            "{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{'<｜Assistant｜>' + content + '<｜end｜>'}}{%- endif %}{%- endif %}"
            "{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.out_first %}{{'<｜outs▁begin｜><｜out▁begin｜>' + message['content'] + '<｜out▁end｜>'}}{%- set ns.out_first = false %}"
            "{%- else %}{{'\\n<｜out▁begin｜>' + message['content'] + '<｜out▁end｜>'}}{%- endif %}{%- endif %}{%- endfor -%}"
            "{% if ns.is_tool %}{{'<｜outs▁end｜>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}")
ALTERNATING = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{#- user and assistant in turns, but for tools -#}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[I] " + system_message + "\\n\\n" + message["content"] + "[/I]" }}
        {%- else %}
            {{- "[I] " + message["content"] + "[/I]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("ids have 9 letters!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[RESULTS] {"content": ' + content|string + ", " }}
        {{- '"id": "' + message.tool_call_id + '"}[/RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""
MACROS = """{%- macro extra(d, seen) %}
    {%- if d is mapping %}
        {%- for k in d if k not in seen %}
            {%- if d[k] is mapping or (d[k] is sequence and d[k] is not string) %}
                {{- '\\n<' ~ k ~ '>' ~ (d[k] | tojson | safe) ~ '</' ~ k ~ '>' }}
            {%- else %}
                {{-'\\n<' ~ k ~ '>' ~ (d[k] | string) ~ '</' ~ k ~ '>' }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
{% endmacro %}
{%- macro content(c, images=false) -%}
    {%- if c is string -%}{{- c -}}
    {%- elif c is iterable and c is not mapping -%}
        {%- for part in c -%}
            {%- if part.type == 'text' -%}{{- part.text -}}{%- elif images -%}<img>{%- else -%}{%- endif -%}
        {%- endfor -%}
    {%- elif c is none or c is undefined -%}
    {%- else -%}{{- raise_exception('Unexpected content type.') -}}
    {%- endif -%}
{%- endmacro -%}
{%- if tools is iterable and tools | length > 0 %}
    {%- for tool in tools %}
        {%- if tool.function is defined %}{%- set tool = tool.function %}{%- endif %}
        {{- '\\n<fn>\\n<name>' ~ tool.name ~ '</name>' }}
        {%- if tool.parameters is defined and tool.parameters is mapping and tool.parameters.properties is defined and tool.parameters.properties is mapping %}
            {%- for name, fields in tool.parameters.properties|items %}
                {{- '\\n<p>' ~ name }}
                {%- if fields.type is defined %}{{- '\\n<type>' ~ (fields.type | string) ~ '</type>' }}{%- endif %}
                {{- extra(fields, ['name', 'type', 'description']) }}
            {%- endfor %}
        {%- endif %}
        {{- extra(tool.parameters, ['type', 'properties']) }}
    {%- endfor %}
{%- endif %}
{% for message in messages %}
    {%- if message.role == 'assistant' %}
        {%- generation %}
        {{- '<a>' ~ content(message.content, images=true) }}
        {%- if message.tool_calls is defined and message.tool_calls is iterable and message.tool_calls | length > 0 %}
            {%- for call in message.tool_calls %}
                {%- for name, value in call.function.arguments|items %}
                    {%- set value = value | tojson | safe if value is mapping or (value is sequence and value is not string) else value | string %}
                    {{- '\\n' + name + '=' }}{{- value }}
                {%- endfor %}
            {%- endfor %}
        {%- endif %}
        {%- endgeneration %}
    {%- else %}
        {{- '<' ~ message.role ~ '>' ~ content(message.content, true) }}
    {%- endif %}
    {%- if loop.previtem and loop.previtem.role == message.role %}{{ '(again)' }}{%- endif %}
    {%- if not loop.last and loop.nextitem.role == 'tool' %}{{ '(tool next)' }}{%- endif %}
{%- endfor %}
"""
FAMILIES = [CHATML, ZEPHYR, HEADERS, BACKWARDS, ONE_LINE, ALTERNATING, MACROS]

# --- single constructs ----------------------------------------------------------------------------------------------

V = {"s": "Hello, World", "n": 7, "z": 0, "neg": -3, "f": 2.5, "t": True, "no": False, "nil": None, "e": "", "l": [3, 1, 2], "el": [],
     "d": {"b": 1, "a": "x", "items": "own", "C": [1, {"k": None}]}, "names": ["bob", "Alice", "bob", "carl"],
     "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"b": "z"}, {"a": None, "b": "X", "c": {"d": [5, 6]}}], "u": "ÄÖÜ straße ΟΔΟΣ ﬁn",
     "ws": " \t x y \u00a0\u2003\n", "multi": "one\n\ntwo\r\nthree\n", "q": "it's \"q\" \\ \n\t\x07\u200b é", "big": 9007199254740993, "em": "a😀b😀"}
EXPRESSIONS = """
s|n|s ~ n ~ f ~ t ~ nil ~ l ~ d|nil|t|f|l|d|q|[q]|[1.0, 1e16, 1e-5, 0.1, 100000.0, 123456789012345680.0]|(1,)|()|(1, 'a')|{}|{'a': 1, 2: 'b', none: t}
d.a|d['a']|d.items|d['items']|d.keys()|d.values()|d.items()|d.nope|d['nope']|d.nope.deeper|nope|nope.x|nope[0]|nope()|nope + 1|nope ~ 'x'|-nope|nope == nope2|nope == 1
not nope|nope and 1|1 if nope else 2|1 if nope|(1 if no) is defined|l[0]|l[-1]|l[9]|l['0']|l.0|l[1:]|l[:-1]|l[::-1]|l[::2]|l[-2:]|l[5:]|l[2:0:-1]|l[:100]|s[0]|s[-1]|s[1:4]|s[::-1]|s[::3]|em[1]|em[1:3]|em[::-1]|em[-1:]|s[100]
l[::0]|l['a':]|d[1:]|nil[0]|n[0]|n.x|nope[1:]|1 + 2 * 3 - 4|7 / 2|7 // 2|-7 // 2|7 % 3|-7 % 3|7 % -3|-7.5 // 2|-7.5 % 2|7.5 % -2|2 ** 10|2 ** -1|2 ** 0.5|-2 ** 2|2 ** 3 ** 2|1 / 0|1 // 0|1 % 0|1.0 / 0|0 ** -1
10 ** 18|10 ** 19|9223372036854775807|9223372036854775808|9223372036854775807 + 1|s * 2|2 * s|s * -1|l * 2|l + l|(1,) + (2,)|l + (1,)|s + 1|s + nil|t + t|t * 3|-t|+f|-s|1_000|1.5e3|1e3|.5|1.|0x10|007|00
1 < 2|1 < 2 < 3|1 < 3 < 2|1 == 1.0|1 == t|'a' < 'b'|'a' < 1|[1, 2] < [1, 3]|[1] < [1, 2]|[1] == (1,)|{'a': 1} == {'a': 1.0}|nil == nil|nil < 1|1 != 2|1 >= 1 <= 1|big == 9007199254740992.0|big > 9007199254740992.0
'ell' in s|'x' in s|1 in s|3 in l|3 not in l|'a' in d|1 in d|[1] in d|nil in l|'' in s|1 in nope|1 in 5|nope in l|nope in d|nope in s
t and n|no and n|no or s|nil or e|e or nil|not t|not not t|not n == 7|t and not no|1 and 2 or 3|(1 if t else 2) + 1|1 if t else 2 if no else 3|'a' if no else 'b' if no else 'c'
n is defined|nope is defined|nope is not defined|nope is undefined|nil is none|n is none|n is not none|s is string|n is string|n is number|t is number|f is number|s is number|t is boolean|n is boolean|n is integer|t is integer|f is float
d is mapping|l is mapping|l is sequence|s is sequence|d is sequence|n is sequence|nope is sequence|l is iterable|n is iterable|nope is iterable|d.items() is sequence|d.items() is iterable|t is true|n is true|no is false|z is false|n is odd|n is even|n is divisibleby 7|n is divisibleby(2)
n is eq 7|n is equalto(7)|n is ne 7|n is gt 3|n is lt 3|n is ge 7|n is le(6)|n is in [7]|'a' is in d|s is lower|'abc' is lower|'ABC' is upper|d.get is callable|range is callable|n is callable|nil is sameas none|t is sameas true|n is not in l|n is divisibleby 7 and t|not n is odd|n is in(l) or t
n is foo|n is defined(1)|n is divisibleby|n is escaped|s | length|l | length|d | count|n | length|nope | length|nil|length|s | upper|u | upper|u | lower|u|title|u|capitalize|s | title|'a-b (c) [d] {e} <f> g_h'|title|nil|title|n|upper|nope|upper
ws | trim|ws|trim|length|'xxaxx' | trim('x')|ws.strip()|ws.lstrip()|ws.rstrip()|'xyax'.strip('xy')|'xya'.lstrip('yx')|'axy'.rstrip('y')|s.strip(nil)|n.strip()|nope | trim|nil | trim
l | join|l | join(', ')|names|join('-')|rows|join(',', attribute='b')|nope | join(',')|s | join('.')|[1, nil, 2.0, 'x']|join(' ')|d|join(',')|n|join|l|first|l|last|el|first|el|last|s|first|s|last|d|first|d|last|nope|first|nope|last|n|first
nope | default('x')|e | default('x')|e | default('x', true)|nil | default('x')|nil|default('x', boolean=true)|nope|default|n|default|nope|default(default_value=3)|s | replace('l', 'L')|s | replace('l', 'L', 1)|s|replace('', '-')|'aaa'|replace('aa', 'b')|n|replace(7, 8)|s.replace('o', '0')|s.replace('o', '0', 1)|s.replace('', '.')|'é€'.replace('', '|')
'5' | int|'5.7'|int|'x'|int|'x'|int(3)|'x'|int(default=4)|f|int|t|int|nil|int|' 1_0 '|int|l|int|nope|int|'1e3'|int|'inf'|int|'nan'|int|'-0'|int|'5'|float|'x'|float|'x'|float(1.5)|n|float|nil|float|'1e400'|float|nope|float|'inf'|float|5|string|f|string|l|string|s|string
(2.5)|round|(3.5)|round|2.675|round(2)|n|round|(2.1)|round(method='ceil')|(2.9)|round(0, 'floor')|1234.5678|round(2, 'floor')|-3|abs|f|abs|s|abs|l|sum|rows[:2]|sum(attribute='a')|[0.1, 0.2]|sum|l|sum(start=10)|names|sum|l|min|l|max|el|min|names|min|names|max|rows[:2]|max(attribute='a')
l | sort|l|sort(reverse=true)|names|sort|names|sort(case_sensitive=true)|rows[:2]|sort(attribute='b', reverse=true)|[1, 'a']|sort|nope|sort|d | dictsort|d|dictsort(true)|d|dictsort(reverse=true)|{'a': 2, 'b': 1}|dictsort(by='value')|{'a': 2, 'b': 1}|dictsort(false, 'key')|l|dictsort
names|unique|list|names|unique|l|reverse|list|s|reverse|l|reverse|names|map('upper')|list|names | map('upper') | join(' ')|rows | map(attribute='a') | list|rows|map(attribute='a', default='none')|list|rows|map(attribute='c.d.0')|list|rows|map(attribute='c.d')|list|names|map('replace', 'b', 'B')|list|names|map('default', 'x')|list|nil|map('upper')|list|names|map('nofilter')|list|names|map|list
l|select|list|[0, 1, none, '', 'a']|select|list|l|select('odd')|list|l|reject('odd')|list|l|select('gt', 1)|list|l|select('in', [1, 2])|list|rows|selectattr('a')|list|rows|selectattr('a', 'defined')|map(attribute='b')|list|rows|rejectattr('a', 'defined')|list|rows|selectattr('b', 'equalto', 'x')|list|rows|selectattr('b', '==', 'y')|list|rows|selectattr('a', 'none')|list|rows|selectattr|list|l|select('nosuch')|list|l|select('string')|first
d | tojson|l|tojson|s|tojson|q|tojson|nil|tojson|t|tojson|f|tojson|d|tojson(indent=2)|d|tojson(indent=0)|d | tojson(indent='--')|el|tojson(indent=2)|{}|tojson(indent=2)|u|tojson|u|tojson(ensure_ascii=true)|em|tojson(true)|d|tojson(separators=(',', ':'))|d|tojson(separators=(',', ':'), indent=1)|d|tojson(sort_keys=true)|(1, 2)|tojson|nope|tojson|range(3)|tojson|{1: 2, none: 3, true: 4, 1.5: 5}|tojson|'</script>&\\''|tojson|1e300*1e10|tojson|d.items()|tojson
d|items|list|nope|items|list|l|items|list|d|list|s|list|range(3)|list|range(1, 4)|list|range(5, 0, -2)|list|range(0)|list|range(3)[1]|range(3)[::-1]|list|range(100001)|list|range(1, 2, 0)|range('a')|range()|range(3)|length|range(3) == range(0, 3)|dict(a=1, b='x')|dict(d, z=1)|dict([('a', 1)])|dict(1)|namespace(a=1)|namespace(a=1).a|namespace().nope|namespace(_a=1)
s.upper()|s.lower()|s.title()|s.capitalize()|u.upper()|u.lower()|u.title()|u.capitalize()|"o'neil's ab2c".title()|s.startswith('He')|s.startswith(('x', 'He'))|s.startswith('')|s.startswith(['He'])|s.endswith('ld')|s.endswith(('ld', 'x'))|s.find('o')|s.find('zz')|s.rfind('o')|s.find('o', 5)|s.find('o', 5, 6)|em.find('b')|s.find('')|s.index('W')|s.index('zz')|s.rindex('l')|s.count('l')|s.count('')|'aaaa'.count('aa')
s.split()|s.split(',')|s.split('l')|s.split('l', 1)|s.split('zz')|s.split('')|ws.split()|' a b  c '.split(nil, 1)|' a b  c '.split(maxsplit=1)|''.split()|''.split('x')|s.rsplit('l', 1)|' a b  c '.rsplit(nil, 1)|' a b '.rsplit()|s.partition(', ')|s.partition('zz')|s.rpartition('l')|s.rpartition('zz')|multi.splitlines()|multi.splitlines(true)|''.splitlines()|'a\\x0bb\\x1cc\\u2028d'.splitlines()|', '.join(names)|''.join(l)|'-'.join('abc')|s.removeprefix('He')|s.removesuffix('x')
'abc'.isalpha()|'ab1'.isalpha()|'ab1'.isalnum()|'12'.isdigit()|''.isdigit()|' '.isspace()|'ab'.islower()|'AB1'.isupper()|'1'.isupper()|'é'.isalpha()|'½'.isnumeric()|d.get('a')|d.get('zz')|d.get('zz', 5)|d.get([])|d.get('a').upper()|l.index(2)|l.index(9)|l.count(3)|(1, 2).index(2)|l.append(1)|d.update({})|d.pop('a')|s.format(1)|'%s' % 1|s.__class__|s._x|d.__class__.__mro__|namespace.x|s.zfill(3)|n.bit_length()|f.is_integer()
multi|indent|multi|indent(2)|multi|indent(2, true)|multi|indent(2, blank=true)|multi|indent('> ', first=true)|''|indent|n|indent|s|safe|s|safe + '!'|('<'|safe) ~ '<'|[1, 2]|safe|s|safe|upper|'a' 'b'|"a\\n\\t\\x41\\u00e9\\101\\q\\'"|'\\u00e9€\\é'|"\\N{BULLET}"|'a\\
b'|strftime_now('%d %b %Y')|strftime_now('%Y-%m-%d %H:%M:%S')|strftime_now('%A, %B %-d %I %p %j %y %%')|strftime_now('%Q')|strftime_now('%s')|strftime_now(1)|raise_exception('stop ' ~ n)|raise_exception(n)
loop|self|true|True|none|None|false|False|caller|varargs|[1, [2, [3]]]|{'a': {'b': {}}}|[nope]|{'a': nope}|(nope,)|[1,]|[,]|{1}|{'a': }|(1|[1|1)|a b|1 +|* 2|'abc|s.|s.1x|s..x|s[|s[1:2:3:4]|s[]|l[1, 2]|d(1)|s()|(s)(1)|f(x=1, 2)|dict(a=1, a=2)|dict(*l)|dict(**d)|s|nofilter|s|xmlattr|l|batch(2)|l|groupby('a')|s|escape|s|wordcount|s|center(20)
1 if|if 1|not|is|n is|n is not|n is odd is even|and 1|1 and|~|a = 1|a == 1 = 2|$|@|`|!|1 ! 2|a;b|;|cycler(1)|joiner(',')|n is test|'upper' is filter|l[t]|l[f]|d[t]|{1: 'a'}[t]|{1: 'a'}[1.0]|s[t]|(l|list) == l|l|list|length|t == 'True'|'a' ~ 1 + 2|1 + 2 ~ 3|1 ~ 2 * 3|-1|abs|-5 % 3|not 1 in l|2 - -2|2--2|- - 2|+-+2
u|length|em|length|em.split('😀')|em|list|em|reverse|em|upper|ws|tojson|'\\u2028'|tojson|'\\x7f\\x80\\xa0\\xad\\u0378\\ue000'|list|['\\x7f\\x80\\xa0\\xad\\u0378\\ue000\\u3000']|'ß'.upper()|'ŉ'|title|'ǆ'.title()|'İ'.lower()|'ΑΣ'.lower()|'ΑΣ Σ ΣΑ'|lower|'ﬃ'.capitalize()|'a\\u0301Σ'.lower()|'K'.lower()|names|map('length')|list|names|map('first')|join|[[1, 2], [3]]|map('sum')|list|[[1, 2], [3]]|sum(start=[])
(names|map('upper'))|list|names|map('upper')|length|names|map('upper')|last|(names|map('upper'))[0]|names|map('upper') is iterable|names|map('upper') is sequence|'a' in names|map('lower')|names|map('upper')|tojson|{'a': [1, {'b': (1, 2)}]}|tojson(indent=3)|[[], {}, [[]]]|tojson(indent=1)|l == [3, 1, 2]|l != [3, 1]|[1, 2] > [1]|(1, 2) <= (1, 2)|'é' < 'f'|'a' <= 'A'|'ab' > 'a'|0.1 + 0.2|1e22|1e21 + 1|123456.789e3|5e-324|1.7976931348623157e308|-0.0|0.0 == -0.0|1.0 // 0.3|1e308 * 10|1e308 ** 2|(1e308 * 10) - (1e308 * 10)
"""
STATEMENTS = [
    "{% for x in l %}{{ x }}{% endfor %}", "{% for x in l %}{{ x }}{% else %}none{% endfor %}", "{% for x in el %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in nope %}{{ x }}{% else %}none{% endfor %}", "{% for x in n %}{{ x }}{% endfor %}", "{% for x in nil %}{% endfor %}",
    "{% for c in s %}{{ c }}.{% endfor %}", "{% for k in d %}{{ k }},{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}{% endfor %}", "{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{% for a, b in l %}{% endfor %}", "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}", "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for x in l %}{{ loop.nope }}{{ loop['index'] }}{% endfor %}", "{% for x in l %}{{ loop.changed(1) }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ loop.last }} {% endfor %}", "{% for x in l if x > 9 %}{{ x }}{% else %}no{% endfor %}",
    "{% set ns = namespace(c=0) %}{% for x in range(6) if ns.c < 2 %}{% set ns.c = ns.c + 1 %}{{ x }}{% endfor %}",
    "{% set ns = namespace(c=0) %}{% for x in range(6) if ns.c < 2 %}{% set ns.c = ns.c + 1 %}{{ x }}{{ loop.last }}{% endfor %}",
    "{% set ns = namespace(c=0) %}{% for x in range(6) if ns.c < 2 %}{% set ns.c = ns.c + 1 %}{{ x }}{{ loop.length }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% continue %}{% else %}else{% endfor %}", "{% for x in l %}{% break %}{% else %}else{% endfor %}", "{% for x in l %}{{ x }}{% if loop.last %}{% break %}{% endif %}{% else %}else{% endfor %}",
    "{% for x in l %}{% for y in el %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}", "{% for x in l %}{% for y in l %}{{ loop.index }}{% if y == 1 %}{% break %}{% endif %}{% endfor %}|{{ loop.index }}{% endfor %}",
    "{% for x in l %}{% set x = x * 2 %}{{ x }}{% endfor %}{{ x }}", "{% set a = 1 %}{% for x in l %}{{ a }}{% set a = a + 1 %}{{ a }}{% endfor %}{{ a }}", "{% set a = 1 %}{% if t %}{% set a = 2 %}{% endif %}{{ a }}",
    "{% if no %}{% set a = 2 %}{% endif %}{{ a }}", "{% for x in l %}{% if x == 1 %}{% set found = x %}{% endif %}{{ found }}{% endfor %}", "{% break %}", "{% if t %}{% continue %}{% endif %}",
    "{% set ns = namespace(x=1, y=[]) %}{% for i in l %}{% set ns.x = ns.x + i %}{% set ns.y = ns.y + [i] %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}",
    "{% set d.a = 1 %}", "{% set nope.a = 1 %}", "{% set ns = namespace() %}{% set ns._a = 1 %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = l %}", "{% set a = 1, 2 %}{{ a }}", "{% set a = 1, %}{{ a }}",
    "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}", "{% set (a, b) = (1, 2) %}{{ a }}", "{% set x %}body {{ n }}{% endset %}[{{ x }}]", "{% set x | upper %}body {{ n }}{% endset %}[{{ x }}]",
    "{% set x | trim | replace('b', 'c') %}  b {% set y = 5 %} {% endset %}[{{ x }}]{{ y }}", "{% set ns = namespace() %}{% set ns.x %}q{% endset %}{{ ns.x }}", "{% set %}{% endset %}", "{% set x = %}", "{% set 1 = 2 %}", "{% set none = 2 %}", "{% set loop = 2 %}{{ loop }}",
    "{% macro m(a, b=2, c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=5) }}{{ m(a=0) }}{{ m() }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}", "{% macro m(a, a) %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(a) %}{{ q }}{{ a is defined }}{% endmacro %}{% set q = 5 %}{{ m() }}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}{{ f(5) }}", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}in{% endcall %}", "{% macro m() %}{{ caller(1, b=2) }}{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{{ n }}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}in{% endcall %}", "{% macro m(a) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(1) %}{% endcall %}{{ m(1) }}", "{% macro m() %}{% set z = 1 %}{{ z }}{% endmacro %}{{ m() }}{{ z }}", "{% macro m() %}  {{ n }}  {% endmacro %}{{ m()|trim }}.{{ m() ~ 'x' }}",
    "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}{{ m }}", "{{ m() }}{% macro m() %}x{% endmacro %}", "{% macro m(x) %}{{ x }}{% endmacro %}{{ l | map('string') | join }}{{ m(m(m(1))) }}", "{% filter upper %}abc {{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aca{% set k = 1 %}{% endfilter %}{{ k }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 1 %}{% endwith %}{{ a }}{{ c }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% generation %}a{% set q2 = 1 %}{{ q2 }}{% endgeneration %}{{ q2 }}", "{% for x in l %}{% generation %}{% break %}{% endgeneration %}{% endfor %}",
    "{% print n, s %}", "{% raw %}{{ n }}{% if %}{% endraw %}", "{%- raw -%} {{ n }} {%- endraw -%} x", "a {% raw %} b {% endraw %}\nc", "a\n  {% raw %}\n b\n  {% endraw %}\nc", "{# c #}x", "a {#- c -#} b", "a\n  {# c #}\nb", "a{#+ c +#}\nb", "{# {{ x #}y", "{# x", "{{", "{%", "{{ n", "{% if n", "{% raw %}x",
    "  {% if t %}  a  {% endif %}  ", "  {% if t %}\n  a\n  {% endif %}\n b", "x {% if t %}\n  a\n  {% endif %} y", "  {%+ if t %}\n a{% endif +%}\n b", "a  {%- if t %} b {%- endif %}  c", "a {{- n -}} b", "a \n\n {{- n -}} \n\n b", "  {{ n }}\n", "a\n", "a\n\n", "\n", "", "\n\na\r\nb\rc\n", "{{ n }}\n\n", "{% if t %}\n\n{% endif %}\n\n", "{% if t -%}\n x \n{%- endif %}",
    "\t {% set a = 1 %}\t\n\t{{ a }}", "a {# x #} {# y #}\n b", " {% if t %}{% endif %} \n", "{{ '{{' }}{{ '%}' }}{{ '}}' }}", "{{ {'a': {'b': 1}}.a.b }}", "{{ {'a': {'b': 1}} }}", "{{ {'a':{'b':1}}}}", "{{ n}}}", "{{ n }} }}", "%} {{ '#}' }}", "{{-1}}", "{{- -1}}", "{{+1}}", "{{ 1 -}}  x", "{%-if t-%} a {%-endif-%}", "{% if t %}a{% else %}b{% endif %}",
    "{% if no %}a{% elif t %}b{% else %}c{% endif %}", "{% if no %}a{% elif no %}b{% endif %}", "{% if t %}", "{% endif %}", "{% if %}{% endif %}", "{% for %}{% endfor %}", "{% for x l %}{% endfor %}", "{% for x in l %}", "{% else %}", "{% elif t %}", "{% foo %}", "{% %}", "{% if t %}{% endfor %}", "{% for loop in l %}{% endfor %}", "{% for x in l recursive %}{{ x }}{% endfor %}",
    "{% block a %}x{% endblock %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% autoescape true %}{% endautoescape %}", "{% do l.append(1) %}", "{% if t, %}tuple{% endif %}", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{{ 1, 2 }}", "{{ }}", "{% if (t) and (n > 3 or no) %}y{% endif %}",
    "{% set x = [] %}{% for i in range(3) %}{% set x = x + [i] %}{% endfor %}{{ x }}", "{% for m in rows %}{{ m.a if m.a is defined else 'no' }}{{ ',' if not loop.last }}{% endfor %}", "{% for m in rows if m.a %}{{ loop.index }}{{ m.b }}{% endfor %}", "{% set g = names|map('upper') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}{{ g|list }}",
    "{% set g = names|select %}{{ 'bob' in g }}", "{% if names|map('upper') %}y{% endif %}", "{% for x in names|map('upper') %}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for x in range(3) %}{{ x }}{{ loop.revindex }}{% endfor %}", "{% for x in d.keys() %}{{ x }}{% endfor %}{% for v in d.values() %}{{ v }}{% endfor %}", "{% for x in l %}{{ loop is defined }}{{ loop|length }}{% endfor %}{{ loop is defined }}",
    "{% set messages = 1 %}{{ messages }}", "{% set range = 5 %}{{ range }}", "{{ namespace }}{{ range }}", "{% for x in l %}{{ x }}{% if not loop.last %}, {% endif %}\n{% endfor %}", "{% for x in l -%}\n  {{ x }}\n{%- endfor %}", "{%- for x in l %}\n{{- x }}\n{% endfor -%}\n", "{{ raise_exception }}", "{% if raise_exception is defined and strftime_now is defined %}y{% endif %}",
    "line 1\nline 2 {{ 1 / 0 }}", "{{ s\n~\nn }}", "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{% set x = 'a' %}{% set y = x %}{% set x = 'b' %}{{ y }}", "{{ (l|first) + (l|last) }}", "{{ l|first|string + 'x' }}", "{{ 'x' if n > 5 and s else 'y' }}", "{{ [x for x in l] }}", "{{ lambda }}", "{{ l[1:][0] }}", "{{ d['C'][1]['k'] is none }}", "{{ d.C.1.k is none }}",
]
REFUSED = {"{{ " + e + " }}" for e in ("10 ** 19", "9223372036854775808", "9223372036854775807 + 1", "0x10", "n is escaped", "s.format(1)", "'%s' % 1", "s.__class__", "s.zfill(3)",
                                         "n.bit_length()", "f.is_integer()", "self", "n is test", "'upper' is filter", "dict(*l)", "dict(**d)", "l|batch(2)", "s|escape", "s|wordcount", "s|center(20)")}
REFUSED |= {"{% for x in l recursive %}{{ x }}{% endfor %}", "{% block a %}x{% endblock %}", "{% for x in l %}{{ loop.changed(1) }}{% endfor %}", "{% autoescape true %}{% endautoescape %}"}


def cases():
    for f in FAMILIES:
        for name, c in CONVERSATIONS.items():
            yield f, {**c, **EXTRA}
            yield f, {k: v for k, v in c.items() if v is not None}
            yield f, {**c, **EXTRA, "in_user": False, "enable_thinking": False}
    for line in EXPRESSIONS.replace("\\\n", "\\\0").strip().split("\n"):
        for e in split_bars(line.replace("\0", "\n")):
            yield "{{ " + e + " }}", "V"
    for s in STATEMENTS:
        yield s, "V"


def split_bars(line):
    """Expressions stand between bars; a bar that has a filter's name and a value before it is the filter's."""
    filters = set(jinja2.Environment().filters) - {"e", "d"} | {"nofilter"}
    parts, out = line.split("|"), []
    for p in parts:
        word = p.strip().split("(")[0].split(" ")[0].split("|")[0]
        unclosed = out and (out[-1].count("(") > out[-1].count(")") or out[-1].count("'") % 2 == 1)
        if out and (word in filters or unclosed) :
            out[-1] += "|" + p
        else:
            out.append(p)
    return out


def record():
    out = []
    seen = set()
    refused = 0
    for text, v in cases():
        key = text + json.dumps(v)
        if key in seen:
            continue
        seen.add(key)
        o, e = render(text, V if v == "V" else v)
        row = {"t": text, "v": v}
        if e is not None:
            row["e"] = e.split(":")[0]
        elif text in REFUSED or "<generator object" in o or "0x" in o or "<class" in o or "<function" in o or "range(" in o or "<Macro" in o or "<built-in" in o:
            row["r"] = 1
            refused += 1
        else:
            row["o"] = o
        out.append(row)
    with open(os.path.join(HERE, "recorded.json"), "w", encoding="utf-8") as f:
        f.write('{"made with": "jinja2 %s, transformers %s, Python %s",\n "variables": {"V": %s},\n "cases": [\n' % (
            jinja2.__version__, transformers.__version__, sys.version.split()[0], json.dumps(V)))
        f.write(",\n".join("  " + json.dumps(r) for r in out))
        f.write("\n ]}\n")
    print(f"{len(out)} cases, {sum('e' in r for r in out)} failures, {refused} refused by us")


def run(program, rows):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for t, v in rows:
            f.write(json.dumps({"t": t, "v": v}) + "\n")
    p = subprocess.run([program, "--render", f.name], capture_output=True)
    os.unlink(f.name)
    if p.returncode != 0:
        sys.exit("the program failed: " + p.stderr.decode()[-2000:])
    return [json.loads(x) for x in p.stdout.decode().split("\n")[:-1]]


# Told when the template is compiled, and by jinja2 only when it comes to it; and slices of constants that have none, which jinja2's
# optimizer makes undefined where the same slice of a variable fails.
QUIRKS = ("there is no test", "there is no filter", "has no slices", "part of a slice should be")


def compare(program, rows, show=20):
    """Differences; refusals by name are counted apart."""
    answers = run(program, rows)
    assert len(answers) == len(rows)
    n_same = n_both_fail = n_refused = 0
    wrong = []
    for (t, v), a in zip(rows, answers):
        o, e = render(t, v)
        if e is None and a.get("o") == o:
            n_same += 1
        elif e is not None and "e" in a:
            n_both_fail += 1
        elif a.get("s") == "ERR_UNSUPPORTED" or any(w in a.get("e", "") for w in QUIRKS) or (e is None and "0x" in o):
            n_refused += 1
        else:
            wrong.append((t, v, o if e is None else "! " + e, a))
    for t, v, o, a in wrong[:show]:
        print("DIFFERS", repr(t), "\n  jinja2:", repr(o)[:600], "\n  ours:  ", repr(a)[:600])
    print(f"{len(rows)} templates: {n_same} equal, {n_both_fail} fail in both, {n_refused} refused by name, {len(wrong)} differ")
    return len(wrong)


# --- random templates -----------------------------------------------------------------------------------------------

class Maker:
    def __init__(self, rng):
        self.r = rng

    def pick(self, *a):
        return self.r.choice(a)

    ATOMS = {"s": ("s", "e", "u", "ws", "multi", "q", "em", "names[0]", "d.a", "'a'", "'b c'", "''", "'é'", "'l'", "' '"),
             "i": ("n", "z", "neg", "1", "0", "2", "-1", "3", "d.b", "l[0]", "loop.index"),
             "f": ("f", "1.5", "0.1", "-2.5", "n / 2"),
             "b": ("t", "no", "true", "false", "n > 3"),
             "l": ("l", "el", "names", "rows", "[]", "[1, 'a', none]", "range(3)", "(1, 2)", "d.keys()", "['b', 'A']"),
             "d": ("d", "rows[0]", "rows[3].c", "{}", "{'a': 1}"),
             "x": ("nope", "nil", "x", "ns.a", "rows[2].a")}

    def expr(self, d, kind=None):
        """An expression, of the kind wanted nine times in ten."""
        kind = kind or self.pick(*"ssiilldbfx")
        if self.r.random() < 0.07:
            kind = self.pick(*"silbdfx")
        if d <= 0 or self.r.random() < 0.12:
            return self.pick(*self.ATOMS[kind])
        e = lambda k=None: self.expr(d - 1, k)  # noqa: E731
        k = self.r.randrange(10)
        if k == 0:
            return f"({e(kind)} if {e()} else {e(kind)})"
        if k == 1:
            return f"({e(kind)} {self.pick('or', 'and')} {e(kind)})"
        if k == 2:
            return f"{e(self.pick('x', kind))} | default({e(kind)}{self.pick('', ', true', ', boolean=' + e('b'))})"
        return "(" + getattr(self, "make_" + kind)(e) + ")" if self.r.random() < 0.5 else getattr(self, "make_" + kind)(e)

    def index(self, e):
        return self.pick(e("i"), e("i") + ":", ":" + e("i"), "::-1", "1:", ":-1", "::2", e("i") + ":" + e("i") + ":" + self.pick("1", "-1", "2", "-2"))

    def make_s(self, e):
        return self.pick(lambda: f"{e('s')} + {e('s')}", lambda: f"{e()} ~ {e()}", lambda: f"{e('s')}[{self.index(e)}]", lambda: f"{e('s')} * {e('i')}",
                         lambda: f"({e('s')}).{self.pick('strip', 'lstrip', 'rstrip', 'upper', 'lower', 'title', 'capitalize')}()",
                         lambda: f"({e('s')}).{self.pick('strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix')}({e('s')})",
                         lambda: f"({e('s')}).replace({e('s')}, {e('s')}{self.pick('', ', ' + e('i'))})", lambda: f"({e('s')}).join({e('l')} | map('string'))",
                         lambda: f"{e()} | {self.pick('string', 'upper', 'lower', 'trim', 'title', 'capitalize')}", lambda: f"{e('l')} | join{self.pick('', '(' + e('s') + ')')}",
                         lambda: f"{e(self.pick('l', 'd', 's', 'i', 'f', 'b', 'x'))} | tojson{self.pick('', '(indent=2)', '(ensure_ascii=true)', '(sort_keys=true)')}", lambda: f"{e('s')} | indent({self.pick('2', e('i'), e('s'))}{self.pick('', ', true', ', false, true')})",
                         lambda: f"{e()} | replace({e()}, {e('s')})", lambda: f"({e('s')}).split({e('s')})[{self.pick('0', '-1')}]", lambda: f"m({e()})", lambda: f"{e('s')} | reverse")()

    def make_i(self, e):
        return self.pick(lambda: f"{e('i')} {self.pick('+', '-', '*', '//', '%')} {e('i')}", lambda: f"-{e('i')}", lambda: f"{e(self.pick('l', 's', 'd'))} | length", lambda: f"{e()} | int",
                         lambda: f"({e('s')}).{self.pick('find', 'rfind', 'count', 'index')}({e('s')})", lambda: f"{e('l')} | {self.pick('sum', 'first', 'last', 'max', 'min')}", lambda: f"{e('i')} | abs",
                         lambda: f"{e('l')}[{e('i')}]", lambda: f"{e('f')} | round | int", lambda: f"{e('i')} ** {self.pick('2', '3')}", lambda: f"({e('l')}).index({e('i')})")()

    def make_f(self, e):
        return self.pick(lambda: f"{e(self.pick('f', 'i'))} {self.pick('+', '-', '*', '/', '//', '%')} {e('f')}", lambda: f"{e()} | float", lambda: f"{e('f')} | round({self.pick('', '1', '2')})", lambda: f"{e('i')} / {e('i')}",
                         lambda: f"{e('f')} | round(1, '{self.pick('ceil', 'floor')}')")()

    def make_b(self, e):
        same = self.pick("s", "i", "l", "f")
        return self.pick(lambda: f"{e(same)} {self.pick('==', '!=', '<', '>', '<=', '>=')} {e(same)}", lambda: f"{e()} {self.pick('==', '!=')} {e()}", lambda: f"not {e()}", lambda: f"{e()} {self.pick('in', 'not in')} {e('l')}",
                         lambda: f"{e('s')} in {e('s')}", lambda: f"{e('s')} in {e('d')}", lambda: f"({e('s')}).{self.pick('startswith', 'endswith')}({e('s')})",
                         lambda: f"({e('s')}).{self.pick('isalpha', 'isdigit', 'isupper', 'islower', 'isspace', 'isalnum')}()", lambda: f"{e('i')} {self.pick('<', '==')} {e('i')} {self.pick('<', '!=')} {e('f')}",
                         lambda: f"{e()} is {self.pick('', 'not ')}{self.pick('defined', 'undefined', 'none', 'string', 'number', 'mapping', 'iterable', 'sequence', 'boolean', 'true', 'false', 'integer', 'float', 'callable', 'lower', 'upper')}",
                         lambda: f"{e('i')} is {self.pick('odd', 'even', 'divisibleby 2', 'gt ' + '2', 'le(' + e('i') + ')', 'in l', 'eq 1')}")()

    def make_l(self, e):
        return self.pick(lambda: "[" + ", ".join(e() for _ in range(self.r.randrange(4))) + "]", lambda: f"({e()}, {e()})", lambda: f"{e('l')}[{self.pick('1:', ':-1', '::-1', '::2', e('i') + ':')}]", lambda: f"{e('l')} + {e('l')}",
                         lambda: f"({e('s')}).{self.pick('split', 'rsplit', 'splitlines')}()", lambda: f"({e('s')}).{self.pick('split', 'rsplit')}({e('s')}{self.pick('', ', 1', ', ' + e('i'))})", lambda: f"({e('s')}).{self.pick('partition', 'rpartition')}({e('s')})",
                         lambda: f"{e('l')} | {self.pick('sort', 'list', 'reverse | list', 'unique | list', 'select | list', 'reject | list')}", lambda: f"{e(self.pick('s', 'd'))} | list", lambda: f"{e('d')} | {self.pick('dictsort', 'items | list')}",
                         lambda: f"({e('d')}).{self.pick('items', 'keys', 'values')}()", lambda: f"range({self.pick('3', 'n', '1, 4', '5, 0, -2', e('i'))})", lambda: f"{e('l')} | map('{self.pick('string', 'upper', 'length', 'trim', 'int', 'first', 'tojson')}') | list",
                         lambda: f"rows | {self.pick('map(attribute=', 'map(default=1, attribute=')}{self.pick(repr('a'), repr('b'), repr('c.d'), repr('c.d.0'))}) | list", lambda: f"{e('l')} | {self.pick('select', 'reject')}('{self.pick('string', 'none', 'defined', 'number', 'odd')}') | list",
                         lambda: f"rows | {self.pick('selectattr', 'rejectattr')}({self.pick(repr('a'), repr('a') + ', ' + repr('defined'), repr('b') + ', ' + repr('equalto') + ', ' + e('s'))}) | list", lambda: f"{e('l')} | sort(reverse={e('b')}, case_sensitive={e('b')})")()

    def make_d(self, e):
        return self.pick(lambda: "{" + ", ".join(f"{self.pick(repr('a'), repr('b'), '1', 'true', e('s'))}: {e()}" for _ in range(self.r.randrange(3))) + "}", lambda: f"dict({self.pick('', e('d') + ', ')}a={e()})", lambda: f"rows[{e('i')}]")()

    def make_x(self, e):
        return self.pick(lambda: f"({e('d')}).{self.pick('a', 'b', 'x', 'c', 'C')}", lambda: f"{e('d')}[{e('s')}]", lambda: f"({e('d')}).get({e('s')}{self.pick('', ', ' + e())})", lambda: f"{e('l')} | {self.pick('first', 'last', 'min', 'max')}", lambda: f"{e('l')}[{e('i')}]",
                         lambda: f"({e()}).{self.pick('a', 'get', 'upper', 'items', 'strip')}", lambda: f"{e()} {self.pick('+', '-', '*', '%', '**', '/')} {e()}", lambda: f"{e()} | {self.pick('abs', 'round', 'sum', 'sort', 'length', 'items', 'dictsort', 'unique', 'map(attribute=' + repr('a') + ')', 'tojson')}")()

    def ws(self):
        return self.pick("", "", "", " ", "\n", "  \n ", "\t", " a ", "\nb\n", "x")

    def tag(self, inside):
        return "{%" + self.pick("", "-", "", "+") + " " + inside + " " + self.pick("", "-", "", "+") + "%}"

    def body(self, d):
        return "".join(self.statement(d) for _ in range(self.r.randrange(1, 3)))

    def statement(self, d):
        k = self.r.randrange(12)
        if d <= 0 or k < 4:
            return self.ws() + "{{" + self.pick("", "-", "") + " " + self.expr(2) + " " + self.pick("", "-", "") + "}}" + self.ws()
        if k == 4:
            return self.ws() + self.tag("if " + self.expr(2)) + self.body(d - 1) + self.pick("", self.tag("else") + self.body(d - 1), self.tag("elif " + self.expr(1)) + self.body(d - 1)) + self.tag("endif") + self.ws()
        if k in (5, 6):
            target = self.pick("x", "x", "x, y")
            over = self.pick("l", "names", "rows", "d", "d.items()", "s", "range(3)", "el", "d|dictsort", self.expr(2))
            inner = self.body(d - 1) + self.pick("", "", self.tag("if " + self.expr(1)) + self.tag(self.pick("break", "continue")) + self.tag("endif"))
            return self.ws() + self.tag(f"for {target} in {over}{self.pick('', '', ' if ' + self.expr(1))}") + inner + self.pick("", self.tag("else") + self.body(d - 1)) + self.tag("endfor") + self.ws()
        if k == 7:
            return self.ws() + self.tag(f"set {self.pick('x', 'y', 'ns.a', 'ns.b')} = {self.expr(2)}") + self.ws()
        if k == 8:
            return self.ws() + self.tag(f"set {self.pick('x', 'y')}{self.pick('', ' | upper', ' | trim')}") + self.body(d - 1) + self.tag("endset") + self.ws()
        if k == 9:
            return self.ws() + "{#" + self.pick("", "-") + " c " + self.pick("", "-") + "#}" + self.ws()
        if k == 10:
            return self.tag(f"macro m(x{self.pick('', '=1', ', y=2')})") + self.body(d - 1) + self.tag("endmacro")
        return self.pick(self.tag("with x = " + self.expr(1)) + self.body(d - 1) + self.tag("endwith"), self.tag("filter " + self.pick("upper", "trim", "title")) + self.body(d - 1) + self.tag("endfilter"),
                         self.tag("generation") + self.body(d - 1) + self.tag("endgeneration"))

    def template(self):
        head = "{% set ns = namespace(a=1) %}{% macro m(x, y=2) %}{{ x }}{% endmacro %}"
        return head + "".join(self.statement(2) for _ in range(self.r.randrange(1, 4)))


def fuzz(program, n, seed):
    print("seed", seed)
    m = Maker(random.Random(seed))
    rows = []
    for i in range(n):
        rows.append((("{{ " + m.expr(3) + " }}") if i % 2 else m.template(), V))
    return compare(program, rows)


def files(program, names):
    wrong = 0
    for name in names:
        text = open(name, encoding="utf-8").read()
        rows = []
        for c in CONVERSATIONS.values():
            rows += [(text, {**c, **EXTRA}), (text, {k: v for k, v in c.items() if v is not None}), (text, {**c, **EXTRA, "add_generation_prompt": True, "enable_thinking": False})]
        print(os.path.basename(name), end=": ")
        wrong += compare(program, rows)
    return wrong


if __name__ == "__main__":
    if len(sys.argv) == 1:
        record()
    elif sys.argv[1] == "--fuzz":
        sys.exit(fuzz(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1) > 0)
    elif sys.argv[1] == "--files":
        sys.exit(files(sys.argv[2], sys.argv[3:]) > 0)
    else:
        sys.exit(__doc__)
