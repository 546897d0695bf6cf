package replytest

// quotingMessages reply to a card.
var quotingMessages = []Message{
	{"yes", "K7F3Q allow_once"},
	{"Yes", "K7F3Q allow_once"},
	{"ALLOW", "K7F3Q allow_once"},
	{"approve ", "K7F3Q allow_once"},
	{"👍", "K7F3Q allow_once"},
	{"👍🏽", "K7F3Q allow_once"},
	{"👍\ufe0f", "K7F3Q allow_once"},
	{"no", "K7F3Q deny"},
	{"Deny", "K7F3Q deny"},
	{"👎", "K7F3Q deny"},
	{"👎🏻", "K7F3Q deny"},
	{"no because of the date", `K7F3Q deny "of the date"`},
	{"yes K7F3Q", "K7F3Q allow_once"},
	{"K7F3Q no", "K7F3Q deny"},
	{"yes K7F3Q 15m", "K7F3Q allow_15m"},
	{"yes M2P4R", Told},
	{"no M2P4R", Told},
	{"M2P4R yes", Told},
	{"yes K7F3Q M2P4R", Told},
	{"yes 15m", "K7F3Q allow_15m"},
	{"15m.", "K7F3Q allow_15m"},
	{"yes #1", Told},
	{"yes run", Told},
	{"no #1", Told},
	{"continue", Told},
	{"yes!", "K7F3Q allow_once"},
	{"yes?", Asked},
	{"y", Asked},
	{"👍👍", Asked},
	{"👍👎", Asked},
	{"yes yes", Asked},
	{"yes no", Asked},
	{"yes but change the date", Passed},
	{"don't allow", Passed},
	{"ok", Passed},
	{"why?", Passed},
	{"ſ", Passed},
	{"ｙｅｓ", Passed},
	{"❤", Passed},
	{"/pending", Command},
}

// quotingRisky reply to a card of high risk, which no single word decides.
var quotingRisky = []Message{
	{"yes", Told},
	{"👍", Told},
	{"no", Told},
	{"👎", Told},
	{"other: look", Told},
	{"yes run", Told},
	{"no because it is wrong", `R5SKY deny "it is wrong"`},
	{"yes R5SKY", Told},
	{"yes R5SKY run", "R5SKY allow_once really"},
	{"no R5SKY", "R5SKY deny"},
}

// quotingChoices reply to the card of a clarification, whose options take the code.
var quotingChoices = []Message{
	{"yes", "CH5SE option_5"},
	{"no", Told},
	{"👍", Told},
	{"2", "CH5SE option_2"},
	{"2?", Passed},
	{"blog", "CH5SE option_1"},
	{"CH5SE 2", "CH5SE option_2"},
	{"other: look at\nstaging first", `CH5SE other "look at\nstaging first"`},
	{"other: CH5SE", `CH5SE other "CH5SE"`},
	{"other:", Told},
	{"other CH5SE look", `CH5SE other "look"`},
	{"CH5SE other: look", `CH5SE other "look"`},
	{"look at staging first", Passed},
}

var quotingOld = []Message{
	{"yes", NotThere},
	{"👍", NotThere},
	{"2", NotThere},
	{"15m", NotThere},
	{"yes ZZZZ9", "unknown ZZZZ9"},
	{"yes K7F3Q", Told},
	{"why was that?", Passed},
}

var reactions = []Message{
	{"👍", "K7F3Q allow_once"},
	{"👍🏻", "K7F3Q allow_once"},
	{"👍🏼", "K7F3Q allow_once"},
	{"👍🏽", "K7F3Q allow_once"},
	{"👍🏾", "K7F3Q allow_once"},
	{"👍🏿", "K7F3Q allow_once"},
	{"👎🏾", "K7F3Q deny"},
	{"👎", "K7F3Q deny"},
	{"", Told},
	{"❤️", Told},
	{"✅", Told},
	{"👌", Told},
	{"🏽", Told},
	{"👍👍", Told},
	{"👍👎", Told},
	{"👍\u200d", Told},
	{"yes", Told},
	{"yes K7F3Q", Told},
}

var reactionsRisky = []Message{{"👍", Told}, {"👎", Told}, {"🎉", Told}, {"", Told}}

var reactionsElsewhere = []Message{{"👍", Asked}, {"👎", Asked}, {"❤️", Nothing}, {"", Nothing}, {"yes K7F3Q", Nothing}}

// consoleMessages are typed at a prompt, where high risk takes the code and no more.
var consoleMessages = []Message{
	{"yes R5SKY", "R5SKY allow_once really"},
	{"yes R5SKY run", "R5SKY allow_once really"},
	{"R5SKY yes", "R5SKY allow_once really"},
	{"yes R5SKY 15m", "R5SKY allow_15m really"},
	{"yes K7F3Q R5SKY", Told},
	{"yes K7F3Q", "K7F3Q allow_once"},
	{"yes", Asked},
	{"CH5SE other: look", `CH5SE other "look"`},
	{"maybe", Passed},
}
