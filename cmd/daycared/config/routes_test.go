package config

import "testing"

// TestBadPeopleAndRoutes is about people and routes that are each well written and cannot work.
func TestBadPeopleAndRoutes(t *testing.T) {
	const people = "people: [{name: fay, user: fay}, {name: sam, user: sam}, {name: kim, user: kim}]\n"
	for _, test := range []struct{ name, text, want string }{
		{"a channel twice", "people: [{name: fay, user: fay, via: [admin, terminal, admin]}]\n",
			`1: people.via: admin is there already; write it once`},
		{"no channel", "people:\n- name: fay\n  user: fay\n  via: []\n",
			`4: people.via: an empty list reaches nobody; leave it out for the daemon's own order`},
		{"channels without addresses", "people:\n- name: fay\n  via:\n  - telegram\n  - whatsapp\n  - terminal\n  - admin\n",
			"4: people.via: telegram goes by the person's telegram, and there is none; " +
				"write theirs, as in telegram: 123456789, or take telegram out\n" +
				"5: people.via: whatsapp goes by the person's whatsapp, and there is none; " +
				"write theirs, as in whatsapp: \"+447700900123\", or take whatsapp out\n" +
				"6: people.via: terminal goes by the person's user, and there is none; write theirs, as in user: fay, or take terminal out\n" +
				"7: people.via: admin goes by the person's user, and there is none; write theirs, as in user: fay, or take admin out"},
		{"A2/a wrong address is told once", "people: [{name: fay, telegram: \"@fay\", via: [telegram]}]\n",
			`1: people.telegram: "@fay" is a username, which can change hands; write the numeric id, as in telegram: 123456789`},

		{"asks one twice", people + "routes:\n- ask:\n  - fay\n  - sam\n  - fay\n",
			`6: routes.ask: "fay" is there already; one person answers once, so write each name once`},
		{"A2/asks strangers", people + "routes: [{ask: [fya, lee]}]\n",
			"2: routes.ask: nobody in people is called \"fya\"; did you mean fay?\n" +
				"2: routes.ask: nobody in people is called \"lee\"; there are fay, sam, kim"},
		{"quorum above one", people + "routes:\n  - ask: [fay]\n    quorum: 2\n", `4: routes.quorum: ` +
			`2 people have to agree, and this route names only 1; write at most 1, or name more in ask or escalate.to`},
		{"quorum above people", people + "routes:\n- ask: [fay, sam]\n  escalate: {after: 1m, to: [kim]}\n  quorum: 4\n",
			`5: routes.quorum: 4 people have to agree, and this route names only 3; ` +
				`write at most 3, or name more in ask or escalate.to`},
		{"the owner beside somebody", people + "routes: [{ask: [owner, fay], quorum: 2}]\n", `2: routes.quorum: ` +
			`2 people have to agree, and the owner may be one of the others; write at most 1, or name more in ask or escalate.to`},
		{"the owner twice", people + "routes: [{ask: [owner, owner]}]\n",
			`2: routes.ask: nobody in people is called "owner"; there are fay, sam, kim`},
		{"somebody called owner", "people: [{name: Owner}]\nroutes: [{ask: [owner]}]\n",
			`1: people.name: "Owner" stands in routes for the person whose agent asks; write another one`},
		{"no quorum", people + "routes: [{ask: [fay], quorum: 0}]\n",
			`2: routes.quorum: "0" is not enough; write 1 or more`},
		{"a quorum of strangers is told once", people + "routes: [{ask: [fya], quorum: 2}]\n",
			`2: routes.ask: nobody in people is called "fya"; did you mean fay?`},

		{"escalates to nobody", people + "routes:\n- ask: [fay]\n  escalate:\n    after: 1m\n    to: []\n",
			`6: routes.escalate.to: nobody is asked then; write at least one person, as in to: [kim]`},
		{"escalates without words", people + "routes:\n- ask: [fay]\n  escalate:\n",
			"4: routes.escalate.to: nobody is asked then; write at least one person, as in to: [kim]\n" +
				"4: routes.escalate.after: nothing says when; write a share of the time, as in after: 50%, or a duration"},
		{"A2/escalates to a stranger", people + "routes:\n- ask: [fay]\n  escalate: {after: 50%, to: [kin]}\n",
			`4: routes.escalate.to: nobody in people is called "kin"; did you mean kim?`},
		{"escalates twice", people + "routes: [{ask: [fay], escalate: {after: 50%, to: [kim, kim]}}]\n",
			`2: routes.escalate.to: "kim" is there already; one person answers once, so write each name once`},
		{"escalates to who is asked", people + "routes: [{ask: [fay, sam], escalate: {after: 50%, to: [kim, sam]}}]\n",
			`2: routes.escalate.to: "sam" is asked from the beginning; write somebody else, or take the name out of ask`},
		{"escalates without people", "routes:\n- escalate: {after: 50%, to: [kim]}\n  ask: [fay]\n",
			"2: routes.escalate.to: nobody is called \"kim\", since there are no people; write them under people\n" +
				"3: routes.ask: nobody is called \"fay\", since there are no people; write them under people"},
		{"escalates too late", people + "routes:\n- ask: [fay]\n  timeout: 5m\n  escalate: {after: 300s, to: [kim]}\n",
			`5: routes.escalate.after: 5m is not shorter than routes.timeout, which is 5m; ` +
				`write a shorter one, or a share of the time, as in 50%`},
		{"escalates later than anybody waits", people + "routes: [{ask: [fay], escalate: {after: 2h, to: [kim]}}]\n",
			`2: routes.escalate.after: 2h is not shorter than approvals.max_timeout, which is 1h; ` +
				`write a shorter one, or a share of the time, as in 50%`},
		{"a topic of no group", people + "routes:\n- ask: [fay]\n  thread: 7\n",
			`4: routes.thread: a topic is one of a group; write its chat, too, as in chat: -1001234567890`},
		{"a group without Telegram", people + "routes:\n- ask: [fay]\n  chat: -1001\n",
			`4: routes.chat: the group is one of Telegram's, and connectors.telegram.enabled is false; ` +
				`switch it on, or take chat out`},
		{"A2/a person's chat", people + "routes: [{ask: [fay], chat: 4242}]\n",
			`2: routes.chat: "4242" is no group's id, which begins with a minus; write it as in chat: -1001234567890`},
		{"A2/a group by its name", people + "routes: [{ask: [fay], chat: ops}]\n",
			`2: routes.chat: "ops" is no group's id; write the number, as in chat: -1001234567890`},
		{"A2/a group as text", people + "routes: [{ask: [fay], chat: '-1001'}]\nconnectors: {telegram: {enabled: true}}\n",
			`2: routes.chat is the numeric id of a group, not text; write it without quotes: chat: -1001`},
		{"a group that is too far", people + "routes: [{ask: [fay], chat: -99999999999999999999}]\n",
			`2: routes.chat: "-99999999999999999999" is too large; write a smaller number`},
		{"a topic that is none", people + "routes: [{ask: [fay], chat: -1001, thread: 0}]\nconnectors: {telegram: {enabled: true}}\n",
			`2: routes.thread: "0" is not enough; write 1 or more`},
		{"a wrong time is told once", people + "routes: [{ask: [fay], timeout: 5, escalate: {after: 2h, to: [kim]}}]\n",
			`2: routes.timeout: "5" is not a duration; write 5m for minutes or 5s for seconds`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := lines(t, test.text); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
