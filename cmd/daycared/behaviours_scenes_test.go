package main

import "fmt"

// The five behaviours that TestBehaviours runs.

// The events when a session starts to wait, and when it has finished.
const (
	waits  = "SESSION_STATUS=awaiting_user WAIT_ACK_ENTER REQUEST_SHOWN"
	idles  = "RUN_FINISHED SESSION_STATUS=idle"
	breaks = "RUN_FINISHED SESSION_STATUS=interrupted"
)

func waitsForAck(b *behaviour) {
	write := func(n int) string { return fmt.Sprintf(`{"path":"notes%d.md","content":"line\n"}`, n) }

	b.scene("A call is allowed")
	b.next("helper", calling("write_file", write(1)), saying("It is written."))
	b.says("write the notes")
	b.until(waits, "wants to write")
	b.looks()
	b.decides("Allow once", "yes CODE")
	b.until(idles, "You allowed this once", "It is written")

	b.scene("A call is denied with a reason, and the agent goes on")
	b.next("helper", calling("write_file", write(2)), saying("Then I leave it."))
	b.says("write more")
	b.until(waits, "wants to write")
	b.because("Deny, say why", "one file is enough")
	b.until(idles, "You denied", "Then I leave it")

	b.scene("The agent's run is stopped while it waits")
	b.next("helper", calling("write_file", write(3)))
	b.says("write even more")
	b.until(waits, "wants to write")
	b.says("/stop")
	b.until(breaks, "ancelled", "stops what it works on")

	b.scene("The operator cancels what is asked")
	b.next("helper", calling("write_file", write(4)), saying("It was cancelled."))
	b.says("once more")
	b.until(waits, "wants to write")
	b.asks("admin", "POST", "/v1/requests/"+b.newest+"/cancel", "")
	b.until(idles+" got", "ancelled", "It was cancelled")

	b.scene("A denial ends the run of an agent with on_denial: terminate")
	b.use("strict")
	b.next("strict", calling("write_file", write(5)))
	b.says("write it")
	b.until(waits, "wants to write")
	b.decides("Deny", "no CODE")
	b.until(breaks, "You denied", "I stop here")

	b.scene("Nobody answers in time")
	b.use("hasty")
	b.next("hasty", calling("write_file", write(6)), saying("Nobody was there."))
	b.says("quickly")
	b.until(waits, "wants to write")
	b.did("nobody answers for 7 seconds")
	b.until(idles, "Expired", "Nobody was there")
}

func requestsPermission(b *behaviour) {
	const stands = "REQUEST_CREATED REQUEST_SHOWN"
	ask := func(reason, more string) string {
		return `{"kind":"permission","permissions":["@network"],"reason":"` + reason + `","agent":"ci","wait":"50s"` + more + `}`
	}
	permission := func(tag, reason string) string {
		return `{"permission":"` + tag + `","reason":"` + reason + `","timeout_minutes":10}`
	}
	overMCP := func(tag, reason string) {
		b.asks("agent", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call",`+
			`"params":{"name":"request_permission","arguments":{"permission":"`+tag+`","reason":"`+reason+`","agentId":"deployer"}}}`,
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25")
	}

	b.scene("An agent of daycared's asks, and is allowed it")
	b.next("helper", calling("request_permission", permission("@network", "I need the docs.")), saying("I have it."))
	b.says("fetch the docs")
	b.until("SESSION_STATUS=awaiting_user REQUEST_SHOWN", "I need the docs")
	b.decides("Allow once", "yes CODE")
	b.until(idles, "You allowed", "I have it")

	b.scene("It is denied")
	b.next("helper", calling("request_permission", permission("@read:/srv/docs", "I need these as well.")), saying("Then not."))
	b.says("and the others")
	b.until("SESSION_STATUS=awaiting_user REQUEST_SHOWN", "I need these")
	b.because("Deny, say why", "they are private")
	b.until(idles, "You denied", "Then not")

	b.scene("A program asks over HTTP, and is allowed it")
	b.asks("agent", "POST", "/v1/requests", ask("fetch the packages", ""))
	b.until(stands, "fetch the packages")
	b.decides("Allow once", "yes CODE")
	b.until("REQUEST_SETTLED REQUEST_USED PERMISSION_APPLIED got", "You allowed")

	b.scene("It is denied with a reason")
	b.asks("agent", "POST", "/v1/requests", ask("fetch them again", ""))
	b.until(stands, "fetch them again")
	b.because("Deny, say why", "use the mirror")
	b.until("REQUEST_SETTLED got", "You denied")

	b.scene("Nobody answers in time")
	b.asks("agent", "POST", "/v1/requests", ask("fetch the mirror", `,"timeout":"7s"`))
	b.until(stands, "fetch the mirror")
	b.did("nobody answers for 7 seconds")
	b.until("REQUEST_SETTLED got", "Expired")

	b.scene("A program asks over MCP, and is allowed it for 15 minutes")
	overMCP("@write:/srv/www", "deploy the site")
	b.until(stands, "deploy the site")
	b.decides("15 minutes", "yes CODE 15m")
	b.until("REQUEST_SETTLED GRANT_ADDED REQUEST_USED PERMISSION_APPLIED got", "You allowed")

	b.scene("It asks for what it has")
	overMCP("@write:/srv/www", "deploy the site")
	b.until("REQUEST_CREATED REQUEST_SETTLED REQUEST_USED PERMISSION_APPLIED got")

	b.scene("It is denied what it asks for over MCP")
	overMCP("@write:/srv/db", "deploy the database")
	b.until(stands, "deploy the database")
	b.because("Deny, say why", "not on a Friday")
	b.until("REQUEST_SETTLED got", "You denied")

	b.scene("Its caller withdraws what it asked")
	b.asks("agent", "POST", "/v1/requests", ask("fetch nothing", ""))
	b.until(stands, "fetch nothing")
	b.asks("agent", "POST", "/v1/requests/"+b.newest+"/cancel", "")
	b.until("REQUEST_SETTLED got got", "ancelled")
}

func pauses(b *behaviour) {
	const stands = "SESSION_STATUS=paused REQUEST_SHOWN"

	b.scene("A pause goes on as soon as fay says so")
	b.next("helper", calling("pause", `{"message":"Look at notes.md before I publish it."}`), saying("It is published."))
	b.says("publish the notes")
	b.until(stands, "Look at notes")
	b.looks()
	b.decides("Continue", "CONTINUE CODE")
	b.until(idles, "✅|You continued", "It is published")

	b.scene("A pause that takes a yes")
	b.next("helper", calling("pause", `{"message":"Publish it now?","mode":"confirm"}`), saying("Now it is."))
	b.says("publish it again")
	b.until(stands, "Publish it now")
	b.decides("Approve", "yes CODE")
	b.until(idles, "Now it is")

	b.scene("A no, with what to do instead")
	b.next("helper", calling("pause", `{"message":"Delete the old ones?","mode":"confirm"}`), saying("Only those of 2019, then."))
	b.says("tidy up")
	b.until(stands, "Delete the old ones")
	b.because("Deny, say why", "only those of 2019")
	b.until(idles, "Only those of 2019, then")

	b.scene("The agent is interrupted, and told what to do instead")
	b.next("helper", calling("pause", `{"message":"Next I write the summary."}`))
	b.says("go on")
	b.until(stands, "Next I write")
	b.decides("Interrupt", "INTERRUPT CODE")
	b.until(breaks, "I stop here")
	b.next("helper", saying("I do the index first."))
	b.says("do the index first")
	b.until(idles, "I do the index first")

	b.scene("A tool's result is looked at before the model reads it")
	b.next("helper", calling("run_command", `{"command":"echo three pages","pause":true}`), saying("I have read it."))
	b.says("count the pages")
	b.until(waits, "three pages")
	b.decides("Allow once", "yes CODE")
	b.until("ACK_DECISION_HANDLED "+stands, "You allowed this once", `run_\x{2060}?command is done`)
	b.decides("Continue", "CONTINUE CODE")
	b.until(idles, "I have read it")

	b.scene("The agent is stopped while it pauses")
	b.next("helper", calling("pause", `{"message":"One more look?"}`))
	b.says("and then?")
	b.until(stands, "One more look")
	b.says("/stop")
	b.until(breaks, "ancelled", "stops what it works on")

	b.scene("Nobody looks, and it goes on by itself")
	b.use("hasty")
	b.next("hasty", calling("pause", `{"message":"I go on in a moment."}`), saying("I went on."))
	b.says("quickly")
	b.until(stands, "I go on in a moment")
	b.did("nobody answers for 7 seconds")
	b.until(idles, "it continues", "I went on")
}

func gatesTools(b *behaviour) {
	write := func(name string) string { return `{"path":"` + name + `","content":"line\n"}` }
	step := func() []string {
		return []string{"write_file", write("a.md"), "list_files", `{"path":"."}`, "write_file", write("b.md")}
	}

	b.scene("An auto tool runs, a forbidden one does not, and nobody is asked")
	b.next("helper", calling("list_files", `{"path":"."}`, "fetch_url", `{"url":"http://127.0.0.1/"}`), saying("It is empty."))
	b.says("look around")
	b.until(idles, "It is empty")

	b.scene("A step of several calls: one is denied, one allowed, and one needs nobody")
	b.next("helper", calling(step()...), saying("One of two."))
	b.says("write two files")
	b.until(waits, "#1.*#2")
	b.decides("#1 ⛔", "no CODE #1")
	b.until("REQUEST_VOTED", "#1 .*denied")
	b.decides("#2 ✅", "yes CODE #2")
	b.until(idles, "#1.*#2|#2.*#1", "One of two")

	b.scene("All gated tools are allowed for the session")
	b.next("helper", calling("write_file", write("c.md")), saying("Written."))
	b.says("write another one")
	b.until(waits, "c.md")
	b.decides("all gated tools", "yes CODE session")
	b.until("GRANT_ADDED "+idles, "You allowed", "Written")
	b.asks("admin", "GET", "/v1/sessions/"+b.session+"/executions", "")
	b.until(got)
	b.next("helper", calling("write_file", write("d.md")), saying("Written as well."))
	b.says("and one more")
	b.until(idles, "Written as well")

	b.scene("The grant ends with the session")
	b.says("/new")
	b.until("GRANT_ENDED SESSION_STATUS", "new")

	b.scene("A step of several calls, of an agent with on_denial: terminate")
	b.use("strict")
	b.next("strict", calling(step()...))
	b.says("write two files")
	b.until(waits, "#1.*#2")
	b.decides("#1 ⛔", "no CODE #1")
	b.until("REQUEST_VOTED", "#1 .*denied")
	b.decides("#2 ✅", "yes CODE #2")
	b.until(breaks, "#1.*#2|#2.*#1", "I stop here")
}

func clarifies(b *behaviour) {
	const asked = "SESSION_STATUS=awaiting_user AIC_DIALOG_REQUESTED REQUEST_SHOWN"
	where := `{"question":"Announce where?","options":["blog","mail","nowhere"]}`
	pose := func(agent, text string, after ...string) {
		b.next(agent, calling("ask_user", where))
		for _, a := range after {
			b.next(agent, saying(a))
		}
		b.says(text)
		b.until(asked, "Announce where")
	}

	b.scene("An option is chosen by its button, or its number")
	pose("helper", "announce it", "By mail.")
	b.looks()
	b.decides("mail", "CODE 2")
	b.until(idles, "By mail")

	b.scene("By its words")
	pose("helper", "announce it again", "Nowhere.")
	b.decides("", "CODE nowhere")
	b.until(idles, "Nowhere.")

	b.scene("In her own words")
	pose("helper", "and again", "On the wall.")
	b.ownWords("✏️ Other", "CODE other: on the wall", "on the wall")
	b.until(idles, "On the wall")

	b.scene("What is no answer changes nothing")
	pose("helper", "once more", "On the blog.")
	b.tries("CODE 9")
	b.tries("CODE what?")
	b.decides("blog", "CODE 1")
	b.until(idles, "On the blog.")

	b.scene("A front end has had no valid answer in three tries")
	pose("helper", "the last", "On the blog then.")
	b.asks("admin", "POST", "/v1/requests/"+b.newest+"/decision", `{"defaulted":true}`)
	b.until(idles+" got", "first option taken", "On the blog then")

	b.scene("The agent is stopped while it asks")
	pose("helper", "never mind")
	b.says("/stop")
	b.until(breaks, "ancelled", "stops what it works on")

	b.scene("Nobody answers in time")
	b.use("hasty")
	pose("hasty", "quickly", "On the blog, I guess.")
	b.did("nobody answers for 7 seconds")
	b.until(idles, "first option taken", "On the blog, I guess")
}
