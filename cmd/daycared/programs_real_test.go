//go:build real

package main

import "github.com/daycared/daycared/agents/models/modeltest"

// program is a program from npm, and how to run it with our model.
type program struct {
	name    string // its name in daycared connect
	title   string // its name in the table
	version []string
	wire    modeltest.Dialect
	env     map[string]string
	files   map[string]string // its settings, below the home
	run     []string          // with $PROMPT
	acp     []string          // the command of an ACP program, as an agent of the daemon
	writes  []string          // what it may write besides its folder
	modes   []mode

	shell, write string // its tools for commands and for files
	command      string // the input of shell, with $COMMAND
	content      string // the input of write, with $FILE and $CONTENT
	own          string // daycared's request_permission, as its model calls it
	question     string // and its ask_user
	plan         string // its own tool that submits a written plan for approval
	choice       string // its own tool for questions
	options      string // the input of choice: which colour, red or blue
}

// mode is one of its modes of asking.
type mode struct {
	name     string
	run      []string // replaces the program's
	args     []string
	env      map[string]string
	files    map[string]string
	without  []string // cases that are impossible in this mode
	also     []string // special cases to run as well
	only     []string // or the only cases to run
	acpMode  string   // the value of mode: in the configuration
	command  string   // replaces the program's
	dialog   string   // text of its own dialog, if its person can answer there too
	terminal bool     // it runs at a terminal, and stays open when it is done
}

// programs are all rows. $NPM is the folder of the programs, $MODEL the address of the model, $WORK the home; each starts in
// $WORK/ws.
var programs = []program{
	{
		name: "claude-code", title: "Claude Code", wire: modeltest.Anthropic,
		version: []string{"$NPM/@anthropic-ai/claude-code-linux-x64/claude", "--version"},
		env: map[string]string{"ANTHROPIC_BASE_URL": "$MODEL", "ANTHROPIC_API_KEY": "x", "DISABLE_AUTOUPDATER": "1",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}, // otherwise root may not choose bypassPermissions
		run: []string{"$NPM/@anthropic-ai/claude-code-linux-x64/claude", "-p", "$PROMPT"},
		modes: []mode{
			{name: "terminal", terminal: true, dialog: "proceed|cancel", // which keeps waiting
				also:    []string{"keyboard", "delay", "choice"},
				without: []string{"late yes", "late no", "own tools", "question", "notice"}, // its person is there
				run:     []string{"$NPM/@anthropic-ai/claude-code-linux-x64/claude", "$PROMPT"},
				files: map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":` +
					`{"approved":["x"]},"projects":{"$WORK/ws":{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`}},
			{name: "terminal, bypassPermissions", terminal: true, also: []string{"choice"}, args: []string{"--dangerously-skip-permissions"},
				without: []string{"notice"},
				run:     []string{"$NPM/@anthropic-ai/claude-code-linux-x64/claude", "$PROMPT"},
				files: map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":` +
					`{"approved":["x"]},"bypassPermissionsModeAccepted":true,` +
					`"projects":{"$WORK/ws":{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`,
					".claude/settings.json": `{"skipDangerousModePermissionPrompt":true}`}},
			{name: "terminal, plan", terminal: true, only: []string{"plan", "plan no", "choice"}, args: []string{"--permission-mode", "plan"},
				run: []string{"$NPM/@anthropic-ai/claude-code-linux-x64/claude", "$PROMPT"},
				files: map[string]string{".claude.json": `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":` +
					`{"approved":["x"]},"projects":{"$WORK/ws":{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`}},
			{name: "-p"},
			{name: "-p, permissions.ask", files: map[string]string{".claude/settings.json": `{"permissions":{"ask":["Bash","Write"]}}`}},
			{name: "-p, auto", args: []string{"--permission-mode", "auto"}},
			{name: "-p, bypassPermissions", args: []string{"--dangerously-skip-permissions"}},
		},
		shell: "Bash", command: `{"command":"$COMMAND","description":"Make it"}`,
		write: "Write", content: `{"file_path":"$FILE","content":"$CONTENT"}`,
		own: "mcp__daycared__request_permission", question: "mcp__daycared__ask_user",
		plan: "ExitPlanMode", choice: "AskUserQuestion", options: `{"questions":[{"question":"Which colour?","header":"Colour",` +
			`"options":[{"label":"Red","description":"as a rose"},{"label":"Blue","description":"as the sea"}],"multiSelect":false}]}`,
	},
	{
		name: "codex", title: "Codex", wire: modeltest.Responses,
		version: []string{"$NPM/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "--version"},
		files: map[string]string{".codex/config.toml": "model = \"m\"\nmodel_provider = \"loop\"\n" +
			"[model_providers.loop]\nname = \"loop\"\nbase_url = \"$MODEL\"\nwire_api = \"responses\"\n"},
		run: []string{"$NPM/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "exec", "--skip-git-repo-check", "$PROMPT"},
		modes: []mode{
			{name: "terminal", terminal: true, also: []string{"choice"},
				run: []string{"$NPM/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "$PROMPT"},
				files: map[string]string{".codex/config.toml": "model = \"m\"\nmodel_provider = \"loop\"\n" +
					"[model_providers.loop]\nname = \"loop\"\nbase_url = \"$MODEL\"\nwire_api = \"responses\"\n" +
					"[projects.\"$WORK/ws\"]\ntrust_level = \"trusted\"\n[features]\ndefault_mode_request_user_input = true\n"}},
			{name: "app-server, on-request", run: []string{"$NPM/.bin/node", "$CLIENTS/ide.mjs",
				"$NPM/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "$PROMPT"},
				command: `{"cmd":"$COMMAND","sandbox_permissions":"require_escalated","justification":"Make it"}`},
			{name: "exec", args: []string{"--sandbox", "danger-full-access"}},
			{name: "exec, dangerously-bypass-approvals-and-sandbox", args: []string{"--dangerously-bypass-approvals-and-sandbox"}},
		},
		shell: "exec_command", command: `{"cmd":"$COMMAND"}`,
		write:   "exec_command", // it finds the patch in the command
		content: `{"cmd":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: made.txt\n+$CONTENT\n*** End Patch\nEOF"}`,
		own:     "mcp__daycared/request_permission", question: "mcp__daycared/ask_user",
		choice: "request_user_input", options: `{"questions":[{"id":"colour","question":"Which colour?","header":"Colour",` +
			`"options":[{"label":"Red","description":"as a rose"},{"label":"Blue","description":"as the sea"}]}]}`,
	},
	{
		name: "gemini", title: "Gemini CLI", wire: modeltest.Gemini,
		version: []string{"$NPM/.bin/node", "$NPM/@google/gemini-cli/bundle/gemini.js", "--version"},
		env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "$MODEL", "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true",
			"GEMINI_TELEMETRY_ENABLED": "false"},
		files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},` +
			`"privacy":{"usageStatisticsEnabled":false},"general":{"disableAutoUpdate":true,"disableUpdateNag":true}}`},
		run: []string{"$NPM/.bin/node", "$NPM/@google/gemini-cli/bundle/gemini.js", "-m", "gemini-2.5-flash", "-p", "$PROMPT"},
		modes: []mode{
			{name: "terminal", terminal: true, run: []string{"$NPM/.bin/node", "$NPM/@google/gemini-cli/bundle/gemini.js",
				"-m", "gemini-2.5-flash", "-i", "$PROMPT"}, also: []string{"choice"},
				without: []string{"own tools", "question"}}, // it begins before it has our tools
			{name: "-p, --yolo", args: []string{"--yolo"}},
		},
		shell: "run_shell_command", command: `{"command":"$COMMAND","description":"Make it"}`,
		write: "write_file", content: `{"file_path":"$FILE","content":"$CONTENT"}`,
		own: "mcp_daycared_request_permission", question: "mcp_daycared_ask_person",
		choice: "ask_user", options: `{"questions":[{"id":"colour","question":"Which colour?","header":"Colour",` +
			`"options":[{"label":"Red","description":"as a rose"},{"label":"Blue","description":"as the sea"}],"type":"choice"}]}`,
	},
	{
		name: "copilot", title: "Copilot CLI", wire: modeltest.OpenAI,
		version: []string{"$NPM/@github/copilot-linux-x64/copilot", "--version"},
		env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "$MODEL", "COPILOT_MODEL": "m", "COPILOT_OFFLINE": "true",
			"COPILOT_AUTO_UPDATE": "false"},
		run: []string{"$NPM/@github/copilot-linux-x64/copilot", "-p", "$PROMPT"},
		modes: []mode{{name: "terminal", terminal: true, also: []string{"choice"},
			run:   []string{"$NPM/@github/copilot-linux-x64/copilot", "-i", "$PROMPT"},
			files: map[string]string{".copilot/config.json": `{"trusted_folders":["$WORK/ws"],"trustedFolders":["$WORK/ws"]}`}},
			{name: "-p"}, {name: "-p, --allow-all-tools", args: []string{"--allow-all-tools"}}},
		shell: "bash", command: `{"command":"$COMMAND","description":"Make it"}`,
		write: "create", content: `{"path":"$FILE","file_text":"$CONTENT"}`,
		own: "daycared-request_permission", question: "daycared-ask_user",
		choice: "ask_user", options: `{"message":"Which colour?","requestedSchema":{"properties":{"colour":` +
			`{"type":"string","title":"Colour","enum":["Red","Blue"]}}}}`,
	},
	{
		name: "opencode", title: "opencode", wire: modeltest.OpenAI,
		version: []string{"$NPM/opencode-linux-x64/bin/opencode", "--version"},
		env:     map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
		files: map[string]string{".config/opencode/opencode.json": `{"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","name":"loop",` +
			`"options":{"baseURL":"$MODEL","apiKey":"x"},"models":{"m":{"name":"m"}}}},"model":"loop/m","small_model":"loop/m",` +
			`"autoupdate":false,"share":"disabled"}`,
			// Otherwise it downloads its own package from npm at its start, and waits minutes for that without a network.
			".config/opencode/node_modules/none": "",
			".config/opencode/package-lock.json": `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":"1.18.33"}}}}`},
		run: []string{"$NPM/opencode-linux-x64/bin/opencode", "run", "$PROMPT"},
		modes: []mode{{name: "terminal", terminal: true, also: []string{"choice"},
			run: []string{"$NPM/opencode-linux-x64/bin/opencode", "--prompt", "$PROMPT"}},
			{name: "run"}, {name: "run, --auto", args: []string{"--auto"}}},
		shell: "bash", command: `{"command":"$COMMAND","description":"Make it"}`,
		write: "write", content: `{"filePath":"$FILE","content":"$CONTENT"}`,
		own: "daycared_request_permission", question: "daycared_ask_user",
		choice: "question", options: `{"questions":[{"id":"colour","question":"Which colour?","header":"Colour",` +
			`"options":[{"label":"Red","description":"as a rose"},{"label":"Blue","description":"as the sea"}]}]}`,
	},
	{
		name: "claude-agent-acp", title: "claude-agent-acp", wire: modeltest.Anthropic, run: errand,
		version: []string{"$NPM/.bin/node", "-p", "require('$NPM/@agentclientprotocol/claude-agent-acp/package.json').version"},
		acp:     []string{"$NPM/.bin/node", "$NPM/@agentclientprotocol/claude-agent-acp/dist/index.js"},
		env: map[string]string{"ANTHROPIC_BASE_URL": "$MODEL", "ANTHROPIC_API_KEY": "x", "IS_SANDBOX": "1",
			"CLAUDE_CONFIG_DIR": "$WORK/.claude"},
		files:  map[string]string{".claude/none": ""},
		writes: []string{"$WORK/.claude"},
		modes: []mode{{name: "as it begins"},
			{name: "begun in bypassPermissions", files: map[string]string{
				".claude/settings.json": `{"permissions":{"defaultMode":"bypassPermissions"},"skipDangerousModePermissionPrompt":true}`}},
			{name: "mode: bypassPermissions", acpMode: "bypassPermissions"}},
		shell: "Bash", command: `{"command":"$COMMAND","description":"Make it"}`,
	},
	{
		name: "codex-acp", title: "codex-acp", wire: modeltest.Responses, run: errand,
		version: []string{"$NPM/.bin/node", "-p", "require('$NPM/@agentclientprotocol/codex-acp/package.json').version"},
		acp:     []string{"$NPM/.bin/node", "$NPM/@agentclientprotocol/codex-acp/dist/index.js"},
		env:     map[string]string{"CODEX_HOME": "$WORK/.codex", "CODEX_API_KEY": "x"},
		files: map[string]string{".codex/config.toml": "model = \"m\"\nmodel_provider = \"loop\"\n" +
			"[model_providers.loop]\nname = \"loop\"\nbase_url = \"$MODEL\"\nwire_api = \"responses\"\n"},
		writes: []string{"$WORK/.codex"},
		modes: []mode{{name: "as it begins"},
			{name: "begun in agent-full-access", env: map[string]string{"INITIAL_AGENT_MODE": "agent-full-access"}},
			{name: "mode: agent-full-access", acpMode: "agent-full-access"}},
		shell: "exec_command", command: `{"cmd":"$COMMAND","sandbox_permissions":"require_escalated","justification":"Make it"}`,
	},
	{
		name: "gemini --acp", title: "gemini --acp", wire: modeltest.Gemini, run: errand,
		version: []string{"$NPM/.bin/node", "$NPM/@google/gemini-cli/bundle/gemini.js", "--version"},
		acp:     []string{"$NPM/.bin/node", "$NPM/@google/gemini-cli/bundle/gemini.js", "--acp", "-m", "gemini-2.5-flash"},
		env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "$MODEL", "GEMINI_API_KEY": "x", "GEMINI_CLI_TRUST_WORKSPACE": "true",
			"GEMINI_CLI_HOME": "$WORK/.home"},
		files: map[string]string{
			".home/.gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false}}`,
			"ws/.gemini/settings.json":    `{"tools":{"shell":{"enableInteractiveShell":false}}}`},
		writes: []string{"$WORK/.home"},
		modes:  []mode{{name: "as it begins"}, {name: "begun with --yolo", args: []string{"--yolo"}}, {name: "mode: yolo", acpMode: "yolo"}},
		shell:  "run_shell_command", command: `{"command":"$COMMAND","description":"Make it"}`,
	},
	{
		name: "opencode acp", title: "opencode acp", wire: modeltest.OpenAI, run: errand,
		version: []string{"$NPM/opencode-linux-x64/bin/opencode", "--version"},
		acp:     []string{"$NPM/opencode-linux-x64/bin/opencode", "acp"},
		env:     map[string]string{"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
		files: map[string]string{"ws/opencode.json": `{"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","name":"loop",` +
			`"options":{"baseURL":"$MODEL","apiKey":"x"},"models":{"m":{"name":"m"}}}},"model":"loop/m","small_model":"loop/m",` +
			`"autoupdate":false,"share":"disabled"}`},
		modes: []mode{{name: "as it begins"}, {name: "permission: ask", files: map[string]string{
			"ws/opencode.json": `{"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","name":"loop",` +
				`"options":{"baseURL":"$MODEL","apiKey":"x"},"models":{"m":{"name":"m"}}}},"model":"loop/m","small_model":"loop/m",` +
				`"autoupdate":false,"share":"disabled","permission":{"bash":"ask","edit":"ask"}}`}}},
		shell: "bash", command: `{"command":"$COMMAND","description":"Make it"}`,
	},
	{
		name: "copilot --acp", title: "copilot --acp", wire: modeltest.OpenAI, run: errand,
		version: []string{"$NPM/@github/copilot-linux-x64/copilot", "--version"},
		acp:     []string{"$NPM/@github/copilot-linux-x64/copilot", "--acp"},
		env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "$MODEL", "COPILOT_MODEL": "m", "COPILOT_OFFLINE": "true",
			"COPILOT_AUTO_UPDATE": "false", "COPILOT_HOME": "$WORK/.copilot"},
		files:  map[string]string{".copilot/none": "", ".cache/none": ""},
		writes: []string{"$WORK/.copilot", "$WORK/.cache"}, // where it unpacks itself
		modes:  []mode{{name: "as it begins"}, {name: "begun with --allow-all-tools", args: []string{"--allow-all-tools"}}},
		shell:  "bash", command: `{"command":"$COMMAND","description":"Make it"}`,
	},
}

// errand lets an agent of the daemon do the task and end.
var errand = []string{"daycared", "run", "coder", "$PROMPT"}
