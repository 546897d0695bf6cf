package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// codeSignIn is what an agent answers that is not signed in.
const codeSignIn = -32000

// signedIn calls a method of the agent's. Where it answers that it is not signed in, it is signed in by the way that the
// configuration names, and called once more: it has done nothing yet.
func signedIn[T any](ctx context.Context, p *process, method string, in any) (out T, err error) {
	out, err = call[T](ctx, p, method, in)
	if p.way == "" || !unsigned(err) {
		return out, err
	}
	_, err = call[sdk.AuthenticateResponse](ctx, p, sdk.AgentMethodAuthenticate, sdk.AuthenticateRequest{MethodId: p.way})
	var told *sdk.RequestError
	switch {
	case errors.As(err, &told):
		return out, &sdk.RequestError{
			Code: codeSignIn, Message: fmt.Sprintf("signing it in by %q fails: %s", p.way, told.Message), Data: told.Data,
		}
	case err != nil:
		return out, err
	}
	return call[T](ctx, p, method, in)
}

// unsigned tells whether an agent answered that it is not signed in.
func unsigned(err error) bool {
	var told *sdk.RequestError
	return errors.As(err, &told) && told.Code == codeSignIn
}

// signIn is what people are told of an agent that is not signed in: what it said, and what there is to do.
func (p *process) signIn(said string) string {
	text := "it is not signed in (" + said + "). "
	if len(p.ways) > 0 {
		text += "It offers:\n- " + strings.Join(p.ways, "\n- ") + "\n"
	}
	return text + "One that needs neither a browser nor a terminal is named as acp_auth of its entry in the configuration. Else sign it " +
		"in by hand on the daemon's machine, under the daemon's account, and name the folder where it keeps that under write; or hand " +
		"on its key with env"
}

// mostWays is how many ways to sign in people are told of.
const mostWays = 10

// offers are the ways in which an agent can be signed in, as people are told of them.
func offers(methods []sdk.AuthMethod) (all []string) {
	for _, m := range methods[:min(len(methods), mostWays)] {
		switch {
		case m.Agent != nil:
			all = append(all, offer(m.Agent.Id, m.Agent.Name, m.Agent.Description))
		case m.EnvVar != nil:
			var names []string
			for _, v := range m.EnvVar.Vars {
				names = append(names, v.Name)
			}
			all = append(all, offer(m.EnvVar.Id, m.EnvVar.Name, m.EnvVar.Description)+
				"; set "+oneLine(short(strings.Join(names, ", "), mostTold))+" for the daemon, and name it under env")
		case m.Terminal != nil:
			args := slices.Clone(m.Terminal.Args)
			for i, word := range args {
				args[i] = quote(word)
			}
			all = append(all, offer(m.Terminal.Id, m.Terminal.Name, m.Terminal.Description)+
				"; run its program in a terminal with: "+oneLine(short(strings.Join(args, " "), mostTold)))
		}
	}
	return all
}

func offer(id, name string, about *string) string {
	text := strconv.Quote(short(id, mostTold))
	if name != "" && name != id {
		text += ", " + oneLine(short(name, mostTold))
	}
	if about != nil && *about != "" {
		text += ": " + oneLine(short(*about, mostTold))
	}
	return text
}
