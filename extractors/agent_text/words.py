"""The words with which agents and their providers say that they give up, each as the start of a line of their own."""

from __future__ import annotations

import re

# What stands in front of a message and says nothing about it.
LEAD = re.compile(
    r"(?:\[?(?:ERROR|Error|error|FATAL|Fatal|fatal)\]?(?::|(?<=\])) {0,2}|[✗✘×■⚠●⎿✕❌!>]\ufe0f? {1,3}|\[(?=API Error)"
    r"|\d{4}-\d\d-\d\d[T ][\d:.,+Z-]{5,20} |(?:litellm|openai|anthropic)\.(?:exceptions\.)?(?=[A-Z]))"
)
# What makes all that follows in a line the provider's own words.
PROVIDER = re.compile(
    r"(?:Failed to authenticate\. )?(?:API [Ee]rror\b|Error code: (?=\d{3} - )|unexpected status (?=\d{3}\b)|exceeded retry limit, last (?=status: \d{3}\b)"
    r"|Error when talking to [\w ]{1,40} API(?: Full report available at: \S{1,300})? |Attempt \d{1,3} failed with (?=status \d{3}\b)|stream (?:disconnected before completion|error): |_?ApiError: )"
)

# Names of errors, as they stand before a colon or alone.
_NAMES: tuple[tuple[str, str], ...] = (
    ("billing", r"billing_error|insufficient_(?:credits?|balance|funds)|(?:Insufficient)?CreditsError"),
    ("quota", r"insufficient_quota|usage_limit(?:_reached|_exceeded)?|quota_exceeded|TerminalQuotaError|UsageLimit(?:Reached|Exceeded)?Error"),
    ("auth", r"authentication_(?:error|failed)|permission_error|invalid_api_key|oauth_org_not_allowed|account_on_hold|(?:Fatal|Provider)?Auth(?:entication)?Error"),
    ("config", r"model_not_found|ModelNotFoundError|ProviderModelNotFoundError|Fatal(?:UntrustedWorkspace|Config)Error"),
    ("budget", r"error_max_budget(?:_usd)?|budget_(?:exhausted|exceeded)|BudgetExceededError"),
    ("context_window", r"context_length_exceeded|prompt_too_long|ContextWindowExceededError|ContextOverflowError|MessageOutputLengthError"),
    ("turn_limit", r"error_max_turns|max_turns(?:_reached)?|FatalTurnLimitedError|GraphRecursionError"),
    ("malformed_output", r"error_max_structured_output_retries|malformed_tool_use_exhausted|InvalidStreamError"),
    ("loop_detected", r"loop_detected|doom_loop"),
    ("transient", r"overloaded_error|rate_limit_(?:error|exceeded)|RateLimitError|RetryableQuotaError|OverloadedError|InternalServerError|APIConnectionError|APITimeoutError"),
)  # fmt: skip

_AGENT = r"(?:(?:the|your|an?) )?(?:ai |language )?(?:agent|assistant|llm|model|provider)"
_LIMITS = r"(?:usage|session|weekly|daily|monthly|hourly|message|5-hour|five-hour|five_hour|seven_day|request)"
# Limits of a machine or of a service under test, which are nobody's plan.
_MACHINE = r"(?:bandwidth|bucket|connection|cpu|disk|file|heap|memory|ram|storage|thread|volume)"

# Starts of messages; of a line that says several things the first one counts.
_STATEMENTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("billing", "credit", (
        r"(?:your )?credit balance is (?:too )?low\b",
        r"(?:you are |you're )?out of credits?\b",
        r"insufficient (?:credits?|balance|funds)\b",
        r"billing (?:hard limit|error)\b",
        r"(?:402 )?payment required\b",
    )),
    ("quota", "usage-limit", (
        r"you(?: have|.ve) (?:hit|reached|exceeded|used up|exhausted) your (?:[\w-]{1,20} ){0,3}(?:limit|quota|capacity)\b",
        r"you exceeded your current quota\b",
        rf"(?!{_MACHINE}\b)(?:[\w-]{{1,20}} ){{0,2}}{_LIMITS}[ -]limit (?:was |has been |is )?(?:reached|exceeded|hit|used up)\b",
        r"(?:your )?(?:(?:current|daily|monthly|api|token|request|free tier) )?quota (?:was |has been |is )?(?:reached|exceeded|exhausted|used up)\b",
        r"rate_limit_event\b.{0,20}\brejected\b",
        rf"{_LIMITS} (?:limit|window)\b.{{0,20}}\b(?:rejected|used up|resets? )",
    )),
    ("auth", "credential", (
        r"(?:invalid|incorrect|missing|expired|no) (?:x-)?api[ -]key\b",
        r"(?:the )?api key (?:is )?(?:not valid|invalid|missing|expired|not set|required)\b",
        r"(?:you are |you're )?not (?:logged|signed) in\b",
        r"please (?:run (?:\S{1,20} )?/?login\b|(?:log|sign) in\b|set an auth method\b)",
        r"invalid auth method\b",
        r"failed to authenticate\b",
        r"(?:oauth |access )?token (?:has |is )?(?:been )?(?:expired|revoked)\b",
        r"your (?:organization|account) (?:has disabled|has been disabled|does not have access)\b",
    )),
    ("config", "untrusted", (
        r"(?:[\w-]{1,20} ){0,5}(?:not |un)(?:running |inside )?(?:in )?(?:a )?trusted (?:folder|workspace|directory)\b",
        r"(?:this|the) (?:current )?(?:folder|workspace|directory) (?:is not|isn't) trusted\b",
    )),
    ("config", "model", (
        r"there's an issue with the selected model\b",
        r"the model [`'\"].{1,80}[`'\"] (?:does not exist|is not (?:found|supported)|was not found)\b",
    )),
    ("budget", "own-budget", (
        r"(?:exceeded|reached|hit) (?:the |your |its )?(?:max(?:imum)? )?(?:usd|cost|token|spend(?:ing)?) budget\b",
        r"(?:reached|hit) (?:the |your |its )?max(?:imum)? budget\b",
        r"(?:max(?:imum)? )?(?:usd|cost|token|spend(?:ing)?) (?:budget|limit) (?:was |has been |is )?(?:exceeded|exhausted|reached|spent)\b",
    )),
    ("context_window", "too-long", (
        r"(?:prompt|conversation) (?:is )?too long\b",
        r"(?:your )?input (?:is too long for (?:the )?requested model|exceeds the context window)\b",
        r"this model's maximum context length\b",
        r"(?:the )?(?:maximum )?context (?:window|length) (?:was |has been |is )?(?:exceeded|full|overflow)",
        r"[\w ]{0,20}\bran out of room in the model's context window\b",
    )),
    ("turn_limit", "turns", (
        r"reached max(?:imum)? (?:number of )?(?:session )?turns\b",
        r"max(?:imum)? (?:number of )?(?:session )?turns (?:reached|exceeded)\b",
        r"only \d{1,4} reflections allowed\b",
        rf"{_AGENT} (?:stopped|ended) (?:due to|because of|after) (?:the )?(?:max(?:imum)?|iteration|turn|step)\b",
    )),
    ("loop_detected", "loop", (
        r"(?:potential |doom |infinite )?loop detected, stopping\b",
        r"a potential loop was detected\b",
    )),
    ("malformed_output", "answer", (
        rf"{_AGENT} (?:returned|gave|sent|produced) (?:an? )?(?:invalid|malformed|unreadable) (?:output|response|answer|tool call|function call|json)\b",
    )),
    ("no_output", "empty", (
        rf"{_AGENT} (?:returned|gave|sent|produced) (?:an empty|a blank|no) (?:output|response|answer|message|content|completion|text)\b",
        rf"(?:received )?(?:an )?(?:empty|no) (?:output|response|answer|message|content|completion) (?:was )?(?:received )?(?:from|by) {_AGENT}\b",
    )),
    ("transient", "passing", (
        rf"(?:the )?(?:selected )?(?:{_AGENT}|server|service|api) (?:is )?(?:currently |temporarily )?(?:overloaded|at capacity|unavailable)\b",
        r"overloaded\b",
        r"(?:api )?rate limit (?:was |has been |is )?(?:reached|exceeded|hit)\b",
        r"rate[ -]limited\b",
        r"(?:429 )?too many requests\b",
        r"(?:we're|we are) (?:currently )?experiencing high demand\b",
    )),
)  # fmt: skip

NAMES = tuple((kind, re.compile(rf"(?:{names})\b(?=: |:?$| - | \()")) for kind, names in _NAMES)
STATEMENTS = tuple((kind, rule, re.compile("|".join(words), re.IGNORECASE)) for kind, rule, words in _STATEMENTS)
