package rules

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// What is known of programs: which run code that they are given, which have subcommands, and which read or write their operands.

var (
	// states are what changes the shell, so that the rest of a command means something else.
	states = strings.Fields(". alias bg bind break builtin caller compgen complete continue declare dirs disown enable eval exec export " +
		"fc fg getopts hash jobs let local logout mapfile noglob popd pushd read readarray readonly return set shift shopt source suspend " +
		"trap typeset ulimit umask unalias unset wait zmodload")
	// bare are runners that need an operand: without one they read code, or run anything.
	bare = strings.Fields("sh bash dash zsh ksh ash fish csh tcsh mksh rbash pwsh powershell cmd python python2 python3 perl ruby node " +
		"nodejs deno bun php lua luajit osascript tclsh Rscript julia ghci irb env sudo doas su xargs parallel psql mysql mariadb sqlite3 " +
		"sqlite mongosh command time nohup")
	// runners are programs whose operands are, or name, code.
	runners = append(slices.Clone(bare), strings.Fields("expect R awk gawk mawk nawk sed gsed ed ex vi vim nvim view emacs "+
		"emacsclient nano bc dc gdb lldb redis-cli duckdb "+
		"runuser pkexec setpriv ssh mosh timeout nice ionice setsid stdbuf watch script flock strace ltrace chroot unshare "+
		"nsenter busybox toybox systemd-run firejail proot fakeroot entr at batch crontab npx pnpx bunx uvx pipx tee dd mail "+
		"mailx sendmail make gmake ninja just mise direnv bundle rake gradle mvn ant tmux screen coproc eval socat nc ncat "+
		"telnet")...)
	// obeying are programs that run what they read, whatever their operands are.
	obeying = strings.Fields("psql mysql mariadb sqlite3 sqlite duckdb mongosh redis-cli bc dc ed ex gdb lldb ftp sftp ssh telnet nc ncat " +
		"socat at batch crontab xargs parallel script tmux screen busybox toybox irb ghci docker podman kubectl")
	// coding are subcommands that run code.
	coding = strings.Fields("npm_run npm_run-script npm_exec npm_install npm_i npm_ci npm_config npm_init npm_x pnpm_run pnpm_exec " +
		"pnpm_dlx pnpm_install pnpm_add yarn_run yarn_exec yarn_dlx yarn_add yarn_install bun_run pip_install pip3_install pip_download " +
		"uv_run uv_pip uv_tool uv_add poetry_run poetry_add pipenv_run cargo_run cargo_install go_run go_generate go_install go_get go_env " +
		"go_tool docker_run docker_exec docker_build docker_compose podman_run podman_exec podman_build kubectl_exec kubectl_run " +
		"kubectl_apply kubectl_debug git_config git_bisect git_submodule git_stash git_filter-branch git_remote git_worktree git_hook " +
		"git_daemon git_maintenance mise_run mise_exec gh_api gh_alias gh_extension brew_install brew_tap apt_install apt-get_install " +
		"gem_install composer_require composer_install terraform_apply helm_install")
	subcommands = strings.Fields("git go npm pnpm yarn bun pip pip3 uv poetry pipenv cargo docker podman kubectl oc gh glab mise brew " +
		"apt apt-get dnf yum pacman gem composer terraform helm systemctl rustup conda aws gcloud az fly heroku vercel wrangler")
	// readers and writers read and write each of their operands.
	readers = strings.Fields("cat head tail less more ls grep egrep fgrep rg sort wc diff cmp cut nl rev tac paste column fold comm stat " +
		"file du tree realpath readlink md5sum sha1sum sha256sum shasum strings jq yq xxd od hexdump test gofmt find fd bat uniq base64 " +
		"zcat zgrep")
	writers = strings.Fields("mv rm rmdir mkdir touch tee truncate chmod chown chgrp unlink shred install mkfifo mknod")
	// texts are programs whose operands are only text.
	texts = strings.Fields("echo printf true false : basename dirname seq sleep date whoami uname nproc which tr pwd exit type")
	// holding are variables that decide what a program runs, so no rule may let them be set. A star stands for the rest of a name.
	holding = strings.Fields("PATH LD_* DYLD_* IFS ENV BASH_ENV BASH_FUNC* BASHOPTS SHELLOPTS PS4 PROMPT_COMMAND SHELL EDITOR VISUAL " +
		"PAGER *_PAGER *PAGER BROWSER GIT_* SSH_* *_proxy *_PROXY PYTHON* PERL5* PERLLIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH " +
		"npm_config_* NPM_CONFIG_* CC CXX AR LD RUSTC RUSTC_* RUSTDOC CARGO_* MAKEFLAGS MAKEFILES GNUMAKEFLAGS DOCKER_* KUBECONFIG LESSOPEN " +
		"LESSCLOSE LESS MANOPT RIPGREP_CONFIG_PATH GOTOOLCHAIN GOPROXY GOENV GOROOT GOPATH GONOSUMDB GONOSUMCHECK GOSUMDB GOBIN " +
		"JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_OPTS GRADLE_OPTS HOME CDPATH XDG_* TMPDIR TAR_OPTIONS GZIP ZDOTDIR FPATH " +
		"TERMINFO* LOCPATH NLSPATH HOSTALIASES GCONV_PATH AWS_* ANSIBLE_* CLASSPATH")
)

func hasSubcommands(programs []string) bool {
	return slices.ContainsFunc(programs, func(name string) bool { return slices.Contains(subcommands, name) })
}

// mayAllow refuses an allow pattern that would cover code which nobody has seen, or that can never hold.
func (p *pattern) mayAllow() error {
	for _, name := range p.starts {
		coded := func(w wildcard) bool {
			return slices.Contains(coding, name+"_"+w.before)
		}
		second := len(p.words) > 1 && slices.ContainsFunc(p.words[1], coded)
		switch {
		case slices.Contains(states, name):
			return fmt.Errorf("%s changes what the rest of a command means, so such a command is always asked about; leave it out", name)
		case name == "cd":
			return errors.New("cd needs no rule in the workspace, and elsewhere one for reading; write it as in read /srv/other/**")
		case slices.Contains(bare, name) && len(p.words) == 1:
			return fmt.Errorf("%s runs any code that it is given; name the file, as in run python3 tools/gen.py", name)
		case !p.exact && (slices.Contains(runners, name) || second || strings.Contains(name, "/")):
			return fmt.Errorf("%s runs code that its words are or name, so a rule for it has no wildcard; write the exact words",
				programOf(p, name, second))
		case slices.Contains(subcommands, name) && (len(p.words) == 1 && !p.exact || len(p.words) > 1 && p.words[1].open()):
			return fmt.Errorf("%s has subcommands, and any of them would be too much; name it, as in run %s %s", name, name, exampleOf(name))
		case name == "find" && slices.ContainsFunc(p.opts, func(o option) bool { return slices.ContainsFunc(o.name, runsFound) }):
			return errors.New("find runs, deletes or writes by that option; write a rule without it")
		}
	}
	return nil
}

func runsFound(w wildcard) bool {
	return slices.Contains(strings.Fields("-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls"), w.before) || w.star
}

func programOf(p *pattern, name string, second bool) string {
	if second {
		return name + " " + p.words[1][0].before
	}
	return name
}

func exampleOf(name string) string {
	example := map[string]string{"git": "status", "go": "vet ./...", "npm": "test", "docker": "ps", "gh": "pr view *", "kubectl": "get pods"}
	return cmp.Or(example[name], "SUBCOMMAND")
}

// decidesPrograms reports whether a variable decides what a program runs.
func decidesPrograms(name string) bool {
	return slices.ContainsFunc(holding, func(h string) bool {
		before, after, star := strings.Cut(h, "*")
		_, is := between(name, before, after)
		return star && is || !star && strings.EqualFold(name, h)
	})
}
