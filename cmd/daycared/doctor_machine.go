package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/daycared/daycared/agents/sandbox"
	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/wire"
)

// findings returns the results of the inspection: wrong if they prevent this account from serving, otherwise notes.
func (in *inspection) findings() (all []finding) {
	for _, o := range in.found {
		level := "note"
		if o.fatal && in.as.self() {
			level = "wrong"
		}
		all = append(all, found(level, o.Problem))
	}
	if !in.as.self() {
		all = append(all, newFinding("note", "files, ports and programs were "+in.scope(), "run doctor as that account"))
	} else if len(in.blind) > 0 {
		all = append(all, newFinding("note", "files, ports and programs were "+in.scope(), ""))
	}
	return all
}

// storeTime bounds the reading of the store.
const storeTime = 20 * time.Second

// examineData checks the content of the data directory as far as this account may read it. Its modes were checked before.
func (in *inspection) examineData(ctx context.Context) []finding {
	dir := in.paths.DataDir
	_, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []finding{newFinding("note", "the data directory "+dir+" does not exist yet", "daycared serve makes it")}
	case errors.Is(err, fs.ErrPermission):
		return []finding{newFinding("note", "the data directory "+dir+" cannot be looked at from this account", "")}
	case err != nil, slices.ContainsFunc(in.found, func(o observation) bool { return o.Key == "data_dir" }):
		return nil // reported already
	}
	var unwell *store.Error
	file := filepath.Join(dir, storeName)
	if exists(file) && in.running == nil && !in.locked() {
		ctx, done := context.WithTimeout(ctx, storeTime)
		defer done()
		if err := store.Inspect(ctx, file); errors.As(err, &unwell) {
			return []finding{newFinding("wrong", unwell.What, "put a backup in its place with: daycared restore FILE (those that daycared backup "+
				"made lie in "+filepath.Join(dir, "backups")+")")}
		} else if err != nil && ctx.Err() == nil {
			return []finding{newFinding("note", "the store "+file+" cannot be looked at: "+err.Error(), "")}
		}
	}
	if err := store.CheckKey(ctx, storeOptions(in.paths, nil)); errors.As(err, &unwell) {
		return []finding{newFinding("wrong", unwell.What, unwell.Advice)}
	}
	return []finding{newFinding("ok", "data directory "+dir, "")}
}

// examineAdminKey checks that the admin key file holds a key: without a valid one, the daemon's account is not recognized as the
// operator's. It reports nothing to an account that may not read the file.
func (in *inspection) examineAdminKey() []finding {
	text, err := config.ReadFile(in.paths.AdminKey, maxSecret)
	if err != nil || isAdminKey(text) {
		return nil
	}
	return []finding{newFinding("wrong", in.paths.AdminKey+" holds no admin key, so the daemon does not know its operator",
		"start the daemon again; it replaces the key and logs that")}
}

// examineListener says whether remote agents are served. Problems with the port were reported before.
func (in *inspection) examineListener() []finding {
	listen := in.cfg.API.Listen
	switch {
	case listen == "":
		return nil
	case in.running == nil:
		return []finding{newFinding("note", "no daemon was found at api.listen, "+listen, "start it with: daycared serve")}
	case wire.Value(in.running.Listen) != listen:
		return []finding{newFinding("note", "the daemon does not listen at "+listen+" yet", "start it again")}
	}
	scheme := "http://"
	if in.cfg.API.TLSCertFile != "" {
		scheme = "https://"
	}
	return []finding{newFinding("ok", "agents elsewhere are answered at "+scheme+listen, "")}
}

// examineReach says whom the running daemon can reach now. An unreachable person is reported by examinePeople.
func examineReach(running *admin.Status) []finding {
	if running == nil || running.Reachable {
		return nil
	}
	var why []string
	for _, p := range running.People {
		text := p.Text
		if !strings.Contains(text, p.Name) {
			text = p.Name + ": " + text
		}
		why = append(why, text)
	}
	if len(why) == 0 {
		why = []string{"no channel has anybody to ask"}
	}
	return []finding{newFinding("wrong", "nobody can be reached: "+strings.Join(why, "; "),
		"open daycared inbox, or pair a phone with: daycared pair NAME, or let requests wait for somebody with api.admin_reachable")}
}

// examineLocks says who is locked, and removes them from the people whose reachability is reported.
func examineLocks(running *admin.Status, s *engine.Settings) (all []finding) {
	if running == nil {
		return nil
	}
	for _, l := range running.Locked {
		all = append(all, newFinding("note", l.Person+" is locked "+lockedSince(l)+": nothing from their accounts counts",
			"daycared unlock "+l.Person))
		names := append(slices.Clone(l.Holds), l.Person)
		s.People = slices.DeleteFunc(slices.Clone(s.People), func(p connectors.Person) bool { return slices.Contains(names, p.Name) })
	}
	return all
}

// callTime bounds each call to a service.
const callTime = 3 * time.Second

// examineServices calls the services that the daemon would call: Telegram, unless a daemon is connected, and the models. A model
// receives neither a key nor a question.
func (in *inspection) examineServices(ctx context.Context) (all []finding) {
	on := in.cfg.Connectors.Telegram
	if token, err := in.cli.telegramToken(on.TokenFile); on.Enabled && in.running == nil && err == nil {
		limited, done := context.WithTimeout(ctx, callTime)
		bot, err := newBot(token, on.APIURL, nil, slog.New(slog.DiscardHandler)).Bot(limited)
		done()
		if err != nil {
			all = append(all, found("wrong", in.cfg.Problem("connectors.telegram.api_url", "connectors.telegram: at %s, %v; look at the network, "+
				"the address and the token", on.APIURL, err)))
		} else {
			all = append(all, newFinding("ok", "@"+bot.Username+" answers at "+on.APIURL, ""))
		}
	}
	tried := map[string]bool{}
	for i, a := range in.cfg.Agents {
		if address := a.Model.BaseURL; address != "" && !tried[address] {
			tried[address] = true
			all = append(all, in.examineModel(ctx, "agents."+strconv.Itoa(i)+".model.base_url", address))
		}
	}
	return all
}

// examineModel checks whether a model's address answers.
func (in *inspection) examineModel(ctx context.Context, key, address string) finding {
	limited, done := context.WithTimeout(ctx, callTime)
	defer done()
	request, err := http.NewRequestWithContext(limited, http.MethodGet, address+"/models", http.NoBody)
	if err == nil {
		var response *http.Response
		if response, err = http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			return newFinding("ok", "something answers at "+address+", where a model is said to be", "")
		}
	}
	return found("wrong", in.cfg.Problem(key, "%s: nothing answers at %s (%v); start what serves the model, or write where it is",
		config.KeyName(key), address, wire.Plain(err)))
}

// examineSandbox says which promises of the sandbox this kernel keeps, and whether anything can run in it. If the sandbox is
// disabled, the configuration's warning covers it.
func examineSandbox(cfg *config.Config, own []string) []finding {
	if !cfg.Sandbox {
		return nil
	}
	level := "note" // unless it is needed
	if len(cfg.Agents) > 0 {
		level = "wrong"
	}
	findings := promised(sandbox.Check(), level)
	if err := sandbox.New(sandbox.Options{Own: own}).Ready(); errors.Is(err, sandbox.ErrOwn) {
		findings = append(findings, newFinding(level, "no command of agents can run: "+err.Error(), "move it elsewhere"))
	}
	return findings
}

// promised lists the promises that hold in one finding, and each other one in its own.
func promised(promises []sandbox.Promise, level string) (findings []finding) {
	var held []string
	for _, p := range promises {
		if p.Holds {
			held = append(held, p.Name)
		}
	}
	if len(held) > 0 {
		findings = append(findings, newFinding("ok", "the kernel can hold commands of agents: "+strings.Join(held, ", "), ""))
	}
	for _, p := range promises {
		if !p.Holds {
			findings = append(findings, newFinding(level, "the kernel cannot hold commands of agents: "+p.Name+": "+p.Why+
				"; files and commands are refused to agents", "take Linux 6.12 or newer with Landlock; sandbox: off does without all of it"))
		}
	}
	return findings
}
