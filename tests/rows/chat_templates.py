"""Chat templates in the manners of the model families that people fine-tune."""

CHATML_WITH_SYSTEM = """\
{% for message in messages %}\
{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}{% endif %}\
{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}\
{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA_STYLE = """\
{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = 'Today is a day.' %}
{%- endif %}
{{- '<|im_start|>system\\n\\n' + system_message }}
{%- if tools is not none and tools %}
    {{- '\\n\\nFunctions:\\n' }}
    {%- for tool in tools %}
        {{- tool | tojson(indent=4) }}
        {{- '\\n' }}
    {%- endfor %}
{%- endif %}
{{- '<|im_end|>' }}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>ipython\\n\\n' + message.content + '<|im_end|>' }}
    {%- elif message.tool_calls is defined %}
        {{- '<|im_start|>assistant\\n\\n' + message.content }}
        {%- for call in message.tool_calls %}
            {{- call.function | tojson }}
        {%- endfor %}
        {{- '<|im_end|>' }}
    {%- else %}
        {{- '<|im_start|>' + message['role'] + '\\n\\n' }}
        {{- message['content'] | trim + '<|im_end|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n\\n' }}
{%- endif %}
"""

THINKING = """\
{%- set ns = namespace(last=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}
{%- endfor %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' and loop.index0 > ns.last %}
        {{- '<think>\\n' + (message.reasoning_content or '') + '\\n</think>\\n\\n' }}
    {%- endif %}
    {{- message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n<think>\\n' }}
{%- endif %}
"""
"""Shows thoughts after the last question only, and opens one in the generation prompt."""

REWRITES_EARLIER_TURNS = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {{- message.content if loop.last else '(' + (messages | length | string) + ')' }}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

MARKED = """\
{%- for message in messages %}
    {%- if loop.first %}{{ '[' ~ (messages | length) ~ ' turns]' }}{% endif %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.role == 'assistant' %}
        {%- generation %}{{ message.content + '<|im_end|>' }}{% endgeneration %}
    {%- else %}
        {{- message.content + '<|im_end|>' }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
"""
"""Begins with the number of turns, so that no prefix fits, but marks what is generated."""

ALTERNATING = """\
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Roles must alternate user/assistant') }}
    {%- endif %}
    {%- if message.role == 'user' %}
        {{- '[INST] ' + message.content + ' [/INST]' }}
    {%- else %}
        {{- ' ' + message.content + eos_token }}
    {%- endif %}
{%- endfor %}
"""
"""Without a generation prompt of its own, the end of the question is where the answer begins."""
