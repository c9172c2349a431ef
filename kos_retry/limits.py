"""Every number that steers behaviour, with its unit and where it comes from.

Sources: "original" is the Go package ``diagnostics`` that the wire types were ported from; "measured"
numbers come from ``benchmarks/``; "heuristic" ones were tuned on real logs and may move.
"""

# Envelope bounds (original: DefaultMaxErrorLength, DefaultMaxConstraints, DefaultMaxActionsLimit,
# DefaultMaxArtifactCount).
MAX_MESSAGE_BYTES = 4096
MAX_CONSTRAINTS = 64
MAX_ACTIONS = 64
MAX_ARTIFACTS = 32
# Different messages of a history of a caller's own that the extractors are asked about, a few milliseconds each (measured).
MAX_ASKED_MESSAGES = 100
# A test id with parameters is long; one that fills the whole message is noise (heuristic).
MAX_CONSTRAINT_BYTES = 512
# One action's canonical input; an edit carries whole files and must not swell the envelope (heuristic).
MAX_ACTION_INPUT_BYTES = 4096
MAX_NAME_BYTES = 256
# What one extractor may put into an envelope (heuristic: 64 findings of 1 KiB).
MAX_ARTIFACT_BYTES = 65_536
# Nesting of JSON that a stranger sends; deeper than any tool's arguments (heuristic).
MAX_JSON_DEPTH = 64
# One JSON document or line on stdin, in bytes: a row with a 24 MB log still fits (heuristic).
MAX_INPUT_BYTES = 64 * 1024 * 1024

# Guidance bounds (original: 2,048 bytes, 10 negative constraints, 5 guidance items).
MAX_PROMPT_BYTES = 2048
MAX_NEGATIVE_CONSTRAINTS = 10
MAX_GUIDANCE_ITEMS = 5
# Bytes a token: logs, JSON and hashes measured 1.85 to 3.1, so two never undercounts by much (measured).
BYTES_PER_TOKEN = 2
MAX_PROMPT_TOKENS = MAX_PROMPT_BYTES // BYTES_PER_TOKEN
# One quoted excerpt inside the guidance, in lines and bytes (heuristic).
MAX_EXCERPT_LINES = 6
MAX_EXCERPT_BYTES = 480

# Failing constraints that the guidance lists by name; the file of them holds all (heuristic).
MAX_CHECKLIST = 10
# Every so many attempts the guidance asks for a new plan (loops that plan anew at every third step stay on course).
REPLAN_EVERY = 3

# Stagnation (original: DefaultStagnationPolicy).
MAX_STAGNANT_ATTEMPTS = 2
MAX_IDENTICAL_SIGNATURES = 2
# Identical calls in a row inside one attempt before it counts as a repeat (three is what agents' own
# loop guards converged on).
MAX_REPEATED_ACTIONS = 3
# How often in a row an agent that wants to stop is sent back to work: as many times as agents' own loop
# guards allow, and well below the eight after which they overrule such hooks.
MAX_STOP_BLOCKS = 3
# The end of the record of calls in which repetitions are looked for: about 700 calls.
HOOK_CALLS_BYTES = 64 * 1024
# Transient failures in a row before a human should look (agents' own reconnect loops give up at five).
MAX_TRANSIENT_RETRIES = 5
# Unreadable answers in a row: the second asks for another approach, the third for a human.
UNUSABLE_OUTPUTS_PIVOT = 2
UNUSABLE_OUTPUTS_ESCALATE = 3
# A cycle counts once it was run through twice; its longest period bounds the work (heuristic).
MIN_CYCLE_ROUNDS = 2
MAX_CYCLE_PERIOD = 16
# Failures in a row that differ in numbers alone before a human should look: one more than two repetitions (heuristic).
MIN_MONOTONY = 4

# The retry schedule of `run`, in seconds.
MAX_ATTEMPTS = 3
DELAY_SECONDS = 1.0
BACKOFF_FACTOR = 2.0
MAX_DELAY_SECONDS = 30.0
# CI hosts kill a cancelled step after about ten seconds: the grace must be shorter.
KILL_AFTER_SECONDS = 5.0
# How long a killed group may take to vanish before it is reported instead of waited for.
REAP_SECONDS = 2.0
# How long output may still arrive after the command itself has ended and something else holds the pipe.
DRAIN_SECONDS = 0.2

# Capture, in bytes for each stream: what `run` keeps of the output as evidence.
CAPTURE_HEAD_BYTES = 1024 * 1024
CAPTURE_TAIL_BYTES = 3 * 1024 * 1024
# Between them: windows round what speaks of a failure, within the first part of what neither head nor tail holds.
CAPTURE_MIDDLE_BYTES = 512 * 1024
CAPTURE_SCAN_BYTES = 64 * 1024 * 1024
CAPTURE_WINDOW_BYTES = 4096
# One read; 256 KiB was the fastest of 64 KiB to 1 MiB on a pipe of 1 MiB (measured).
READ_BYTES = 256 * 1024
# How long a pipe that stands in the place of a file may take no byte, or give none: a file never does (heuristic).
FILE_SECONDS = 1.0
PIPE_BYTES = 1024 * 1024

# What `run` keeps of a transcript on disk, in two halves: when both are full, the older one is given up. As much as an
# extractor reads of one stream; agents write some MiB an hour.
TRANSCRIPT_BYTES = 64 * 1024 * 1024
# Lines of a transcript's stream that are no JSON, kept as evidence: what the command itself complained of (heuristic).
TRANSCRIPT_PROSE_BYTES = 64 * 1024
# What an envelope keeps of one action's result: all of them together stay far below a log (heuristic).
MAX_ACTION_RESULT_BYTES = 1024
# Failed actions whose results are looked through for failing tests, the latest first (heuristic).
MAX_TEST_RUNS = 5
# What is read of an actions file at most: the end of what one attempt appended.
ACTIONS_FILE_BYTES = 16 * 1024 * 1024

# Evidence: how much of an output the signature is made of.
MAX_LINE_CHARS = 4096
MAX_EVIDENCE_LINES = 8
# Where nothing looks like an error, what was said last counts (heuristic).
FALLBACK_EVIDENCE_LINES = 3
# Candidate lines that are scored; beyond it the middle of the candidates is dropped (heuristic).
MAX_CANDIDATES = 8_000

# Words of one feature that two envelopes are compared by: aligning words takes time that grows with their square (heuristic).
MAX_COMPARED_WORDS = 200

# Extractors.
EXTRACTOR_TIMEOUT_SECONDS = 5.0
EXTRACTOR_MAX_TIMEOUT_SECONDS = 300.0
EXTRACTOR_TOTAL_SECONDS = 30.0
# How long what an extractor started may outlive it before it counts as left behind (heuristic: a pipeline's last words).
EXTRACTOR_LINGER_SECONDS = 0.2
# From this much output on a second host is worth its start (measured).
SECOND_HOST_BYTES = 1024 * 1024
EXTRACTOR_OUTPUT_BYTES = 1024 * 1024
EXTRACTOR_STDERR_BYTES = 2048
EXTRACTOR_PROTOCOL = 1
MAX_FINDINGS = 200
MAX_EVIDENCE_EXCERPT_BYTES = 1024

# Report files of one attempt (heuristic: more is a glob that means something else).
MAX_REPORT_FILES = 256

# How long a gate may think, and whoever is asked for help, in seconds: a machine and a person (heuristic).
GATE_SECONDS = 60.0
ESCALATION_SECONDS = 600.0

# How long a session that was told to end may take for it, in seconds: its command's grace, and a little more.
SESSION_STOP_SECONDS = 30.0
# Sessions are forgotten after so long, where nobody says otherwise (heuristic).
SESSION_MAX_AGE = "30d"

# Secrets shorter than this would blank ordinary words (heuristic).
MIN_SECRET_CHARS = 6

# The start of a run is cheap until the command has taken this long: then the failure path is loaded.
WARM_UP_SECONDS = 0.05

# Regular expressions of users: the time for each, and how much of an output they see (an honest expression
# needs milliseconds for it; a catastrophic one would need years).
EXPRESSION_SECONDS = 2.0
EXPRESSION_TEXT_BYTES = 4 * 1024 * 1024

# Problem matchers, which published files keep far below: a file in bytes, how many there are, the lines that one reads, the
# length of an expression in characters (heuristic).
MAX_MATCHER_FILE_BYTES = 1024 * 1024
MAX_MATCHERS = 64
MAX_MATCHER_PATTERNS = 16
MAX_EXPRESSION_CHARS = 4096
# The store, in seconds: how long a failure may wait for what is known about it, and how long the end of a run may take to
# record it. 200 processes that write one file at once were through in less (measured); a person who waits notices more.
STORE_LOOKUP_SECONDS = 1.0
STORE_WRITE_SECONDS = 5.0
# The newest sightings of a failure that a decision rests on: many times what any of its rules needs, and read in 2 ms (measured).
STORE_LOOKUP_ROWS = 200
# What the store keeps: nothing older than a year, whose weight is under 0.1 %, and at most so many sightings in a file
# (about 90 MB, measured) or on a server that many runners share. Looked after at one in so many writes.
STORE_MAX_AGE_DAYS = 365.0
STORE_MAX_FILE_ROWS = 100_000
STORE_MAX_SERVER_ROWS = 1_000_000
STORE_PRUNE_EVERY = 64
STORE_IMPORT_BATCH = 500
# One line of a message or a command, in bytes.
STORE_TEXT_BYTES = 200

# The estimate that a failure passes when run again. Prior: one in seven, as if seven retries had been seen. At Google almost
# 16 % of the tests, "more than 1 in 7", fail now and then with nothing changed (Flaky Tests at Google, 2016).
PRIOR_PASSES = 1.0
PRIOR_FAILURES = 6.0
# What a sighting weighs halves in this time: code moves on, and what was flaky gets mended (heuristic).
HALF_LIFE_DAYS = 30.0
CREDIBLE_MASS = 0.95
# From this rate on another attempt is worth it: a pass saves a person's look, which is worth five attempts (heuristic).
KNOWN_FLAKE_RATE = 0.2
# A known flake gets so many attempts more than its passes took so far, up to this many in all (agents' own reconnect loops give
# up at five, too). With one more, known flakes whose attempts fail in half of the cases kept 0.93 of the passes that five blind
# attempts bring, known flakes and bursts of all rates 0.87; with two 0.99 and 0.98 (measured: benchmarks/economics.py).
KNOWN_FLAKE_MARGIN = 2
KNOWN_FLAKE_ATTEMPTS = 5
# Below this rate, even if luck was bad so far, no retry is worth it; with the prior it takes 30 retried runs without a pass.
NEVER_PASSED_RATE = 0.1
# Lessons of earlier sessions in the guidance.
MAX_LESSONS = 3
# A trend compares so many days with as many before them (heuristic: two working weeks).
TREND_DAYS = 14.0
