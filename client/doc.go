// Package client asks people, through daycared, from any Go program.
//
//	c, err := client.New(client.Options{Socket: "/run/daycared/agent.sock"})
//	…
//	answer, err := c.Ask(ctx, []string{"@write:/srv/www"}, "deploy v42", client.Question{Key: "deploy-v42"})
//	if err != nil || !answer.Yes {
//		…
//	}
//
// A question waits for as long as people may take, across lost connections and restarts of the daemon, and is put to
// them once: a call that asks again joins it. With a [Question.Key] even another process does, and finds the answer that
// was given meanwhile. Whatever is not a yes is not one: no error and no silence ever counts as consent.
//
// Leaving (the end of a context) is not cancelling: the question stands until [Client.Cancel], or its deadline.
package client
