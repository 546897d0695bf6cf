package replytest

// germanMessages are answers in German, and messages that nearly are.
var germanMessages = []Message{
	{"ja K7F3Q", "K7F3Q allow_once"},
	{"JA k7f3q!", "K7F3Q allow_once"},
	{"Ja, K7F3Q.", "K7F3Q allow_once"},
	{"erlauben K7F3Q", "K7F3Q allow_once"},
	{"Erlaube K7F3Q", "K7F3Q allow_once"},
	{"K7F3Q ja", "K7F3Q allow_once"},
	{"ja K7F3Q einmal", "K7F3Q allow_once"},
	{"ja K7F3Q Sitzung", "K7F3Q allow_session"},
	{"ja K7F3Q immer", "K7F3Q allow_always"},
	{"ja K7F3Q 15m", "K7F3Q allow_15m"},
	{"ja K7F3Q 15 Minuten", "K7F3Q allow_15m"},
	{"ja STEP2 #1 15 Minuten", "STEP2 allow_15m #1"},
	{"ja K7F3Q M2P4R", "K7F3Q allow_once, M2P4R allow_once"},
	{"yes K7F3Q einmal", "K7F3Q allow_once"},
	{"ja K7F3Q session", "K7F3Q allow_session"},
	{"JA R5SKY AUSFÜHREN", "R5SKY allow_once really"},
	{"ja R5SKY ausfu\u0308hren", "R5SKY allow_once really"},
	{"JA R5SKY AUSFU\u0308HREN", "R5SKY allow_once really"},
	{"ja R5SKY ausfuehren", "R5SKY allow_once really"},
	{"ja R5SKY run", "R5SKY allow_once really"},
	{"nein K7F3Q", "K7F3Q deny"},
	{"ABLEHNEN K7F3Q", "K7F3Q deny"},
	{"K7F3Q nein", "K7F3Q deny"},
	{"nein K7F3Q weil es zu spät ist", `K7F3Q deny "es zu spät ist"`},
	{"ablehnen K7F3Q weil\nso nicht", `K7F3Q deny "so nicht"`},
	{"nein K7F3Q because later", `K7F3Q deny "later"`},
	{"K7F3Q nein weil ja", `K7F3Q deny "ja"`},
	{"nein STEP2 #2 weil nicht", `STEP2 deny #2 "nicht"`},
	{"nein R5SKY", "R5SKY deny"},
	{"weiter PAUSE", "PAUSE continue"},
	{"fortsetzen PAUSE", "PAUSE continue"},
	{"unterbrechen PAUSE", "PAUSE interrupt"},
	{"PAUSE weiter", "PAUSE continue"},
	{"CH5SE anders: erst staging", `CH5SE other "erst staging"`},
	{"anders CH5SE erst staging", `CH5SE other "erst staging"`},
	{"ja ZZZZ9", "unknown ZZZZ9"},
	{"ja", Asked},
	{"JA!", Asked},
	{"nein", Asked},
	{"ja nein", Asked},
	{"ja R5SKY", Told},
	{"ja K7F3Q ausführen", Told},
	{"ja K7F3Q 20 Minuten", Told},
	{"ja K7F3Q 15 Stunden", Told},
	{"ja K7F3Q 99999999999999999999 Minuten", Told},
	{"ja K7F3Q 15 Minuten 15 Minuten", Told},
	{"ja K7F3Q für 15 Minuten", Told},
	{"ja K7F3Q diese Sitzung", Told},
	{"ja K7F3Q weil", Told},
	{"hilfe", Passed},
}

// quotingGerman reply to the card of K7F3Q.
var quotingGerman = []Message{
	{"ja", "K7F3Q allow_once"},
	{"JA!", "K7F3Q allow_once"},
	{"Ja.", "K7F3Q allow_once"},
	{"erlauben", "K7F3Q allow_once"},
	{"einmal", "K7F3Q allow_once"},
	{"15 Minuten.", "K7F3Q allow_15m"},
	{"ja 15 Minuten", "K7F3Q allow_15m"},
	{"nein", "K7F3Q deny"},
	{"ablehnen", "K7F3Q deny"},
	{"nein weil es brennt", `K7F3Q deny "es brennt"`},
	{"ja?", Asked},
	{"15 Minuten?", Passed},
	{"weiter", Told},
}

// Negations of each language are messages that never allow anything, sent as they are or as a reply to a card.
var Negations = map[string][]string{
	"en": texts(doubtfulMessages),
	"de": {
		"nicht erlauben", "nicht erlauben K7F3Q", "K7F3Q nicht erlauben", "erlauben nicht K7F3Q", "erlaube K7F3Q nicht",
		"erlaube nicht", "erlauben? K7F3Q", "erlauben? nein", "nein, erlauben", "nie erlauben K7F3Q", "niemals erlauben",
		"niemals K7F3Q erlauben", "keinesfalls erlauben", "auf keinen Fall", "auf keinen Fall K7F3Q", "Auf gar keinen Fall!",
		"ja, aber", "ja, aber K7F3Q", "ja K7F3Q aber", "ja K7F3Q, aber erst morgen", "ja aber nicht jetzt", "ja aber nur lesen", "Ja, aber ...",
		"ja nicht", "ja nicht K7F3Q", "ja K7F3Q nicht", "ja, nicht", "JA NICHT!", "ja nicht erlauben", "ja nie",
		"ja?", "ja? K7F3Q", "ja K7F3Q?", "K7F3Q ja?", "ja?!", "ja!?", "Ja ...", "ja…", "ja..", "ja K7F3Q...", "K7F3Q ja…",
		"ja nein", "nein ja", "ja, nein", "jein", "jein K7F3Q", "K7F3Q jein", "ja K7F3Q nein", "nein K7F3Q ja", "ja und nein",
		"nein danke", "nein danke K7F3Q", "nein, danke", "danke nein", "ja danke", "danke, nein K7F3Q", "Nein!!!", "NEIN", "nein.",
		"erst fragen", "erst fragen K7F3Q", "erst nachfragen", "ja, erst fragen", "vorher fragen", "ja K7F3Q erst fragen",
		"lieber nicht", "lieber nicht K7F3Q", "ja lieber nicht", "eher nicht", "besser nicht", "K7F3Q besser nicht", "noch nicht", "jetzt nicht",
		"ja, wenn sam zustimmt", "ja K7F3Q wenn die Tests laufen", "ja falls", "ja sofern", "ja sobald", "ja K7F3Q später", "ja K7F3Q morgen",
		"ja K7F3Q spa\u0308ter", "spaeter ja K7F3Q", "später erlauben", "spa\u0308ter erlauben", "später", "ja, später", "ja, spaeter",
		"darf nicht", "das darf er nicht", "soll nicht erlaubt werden", "nicht erlaubt", "unerlaubt", "erlaubt?", "erlaubt K7F3Q", "ist das erlaubt?",
		"ablehnen", "ablehnen!", "ABLEHNEN", "lehne ab", "lehne K7F3Q ab", "ablehnen, nicht erlauben", "ablehnen oder erlauben",
		"abbrechen", "stopp", "Stopp K7F3Q", "halt", "warte", "warten K7F3Q", "nö", "no\u0308", "noe", "nee", "nix da", "Quatsch", "bloß nicht",
		"bloss nicht K7F3Q", "ja bloß nicht", "ja bloss nicht!", "um Gottes willen nein", "kommt nicht in Frage", "ungern", "ja ungern",
		"ja ja", "jaja", "jaja K7F3Q", "ja ja K7F3Q", "jaa", "jaa K7F3Q", "jo K7F3Q", "jap K7F3Q", "jawohl K7F3Q", "ja bitte K7F3Q",
		"bitte erlauben K7F3Q", "bitte nicht erlauben K7F3Q", "erlauben bitte K7F3Q", "ja, mach das", "ja mach", "na ja", "naja K7F3Q", "na ja K7F3Q",
		"alles erlauben", "alle erlauben", "erlaube alles", "ja alle", "ja an alle", "immer nein", "nie", "nie K7F3Q", "einmal nicht", "nicht einmal",
		"nicht einmal K7F3Q", "ja K7F3Q nicht einmal", "ja K7F3Q einmal nicht", "ja K7F3Q einmal nie", "ja K7F3Q immer nein", "ja K7F3Q 15 Minuten nicht",
		"ja K7F3Q minus 15 Minuten", "ja K7F3Q -15 Minuten", "ja K7F3Q 15 Minuten spa\u0308ter", "ja K7F3Q in 15 Minuten", "in 15 Minuten",
		"15 Minuten warten", "nicht 15 Minuten", "15 Minuten nicht", "keine 15 Minuten", "1５ Minuten", "ja\u200b K7F3Q", "j\u0430 K7F3Q", "ｊａ K7F3Q",
		"jа", "ja\u0308 K7F3Q", "jä K7F3Q", "jae K7F3Q", "\u202eja K7F3Q", "ja\u2028K7F3Q", "ja\nK7F3Q", "ja K7F3Q\nnein M2P4R", "nein K7F3Q\nja",
		"„ja“ K7F3Q", "\"ja K7F3Q\"", "(ja K7F3Q)", "> ja K7F3Q", "*ja* K7F3Q", "sam: ja K7F3Q", "ja: K7F3Q", "ja-K7F3Q", "ja #K7F3Q", "jaK7F3Q",
		"ja R5SKY ausführen?", "ja R5SKY nicht ausführen", "ja R5SKY ausführen nicht", "nicht ausführen R5SKY", "ausführen R5SKY",
		"JA R5SKY NICHT AUSFU\u0308HREN", "ja R5SKY ausf\u00fchren!?", "ja R5SKY aus führen", "ja R5SKY ausfuhren", "erlaubẹn K7F3Q", "ERLAUBEN? K7F3Q",
		"Erlauben K7F3Q nur mit Rückfrage", "Erlauben K7F3Q ru\u0308ckfragen", "Ja zu K7F3Q, nein zu M2P4R", "weder ja noch nein", "ja oder nein?",
		"Antworten: JA K7F3Q oder NEIN K7F3Q", "was heißt ja K7F3Q", "wieso?", "weil", "weil ja", "nein weil", "nein weil ja", "verweigern", "verboten",
	},
}

func texts(all []Message) (list []string) {
	for _, m := range all {
		if m.Want == Told || m.Want == Asked || m.Want == Passed {
			list = append(list, m.Text)
		}
	}
	return list
}
