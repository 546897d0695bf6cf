package telegram

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

func TestToasts(t *testing.T) {
	once := permissions.Allow(permissions.Once)
	p := prompt(t, permissions.KindTool, twoOf("fay", "sam"))
	one := after(t, p, vote("fay", "telegram", once, nil))
	two := after(t, one, vote("sam", "telegram", once, nil))
	wordy := func(v *permissions.Vote) { v.Comment = strings.Repeat("no ", 300) }
	denied := after(t, p, vote("fay", "telegram", permissions.Deny, wordy))
	_, late := permissions.Step(two.Request, vote("fay", "telegram", once, nil))
	var settled *permissions.Refusal
	if !errors.As(permissions.ToRefusal(late), &settled) {
		t.Fatal(late)
	}
	for got, want := range map[string]string{
		toastDone(one.Request, i18n.English):                   "⏳ 1 of 2, allowed by fay",
		toastDone(two.Request, i18n.English):                   "✅ Allowed once by fay and you",
		toastDone(denied.Request, i18n.English):                "⛔ You denied this · \"no no no",
		toastRefused(settled, i18n.English):                    "Too late: already approved by sam at ",
		toastRefused(permissions.NotYours(), i18n.English):     "This is not yours to decide.",
		toastRefused(permissions.Unknown("x"), i18n.English):   "This button belongs to nothing that daycared knows. Nothing was changed.",
		toastRefused(permissions.ButtonMoved(), i18n.English):  "This card was shown again below; please answer there.",
		toastRefused(permissions.Broken("wait"), i18n.English): "daycared cannot store anything just now, so nothing is granted: wait.",
		toastBroken: "This could not be stored just now. Nothing was changed; it is tried again by itself.",
		toastReally: "High risk: nothing is allowed yet.",
		toastReason: "Nothing is denied yet: write your reason",
		toastRefused(permissions.TooBig(), i18n.English): "This is too big to be shown here whole, so it cannot be allowed here.",
		toastOther: "Nothing is answered yet: write your answer",
	} {
		if !strings.HasPrefix(got, want) || card.UTF16.Of(got) > maxToast {
			t.Errorf("%q; want %q, and at most %d units", got, want, maxToast)
		}
	}
	if tooBig(p) || !tooBig(prompt(t, permissions.KindTool, details(strings.Repeat("\n", 900_000)+"x"))) {
		t.Error("too big is the small one, or not the big one")
	}
}

// TestTheCodeOfAQuestion says that the code is found in our questions and in nothing else, with what was asked for.
func TestTheCodeOfAQuestion(t *testing.T) {
	for i, q := range []question{whyNot, inOwnWords, whyNot, inOwnWords} {
		l := i18n.Languages()[i/2]
		rapid.Check(t, func(t *rapid.T) {
			want := permissions.Coder{}.Encode(rapid.Int64Range(0, permissions.CodeCount-1).Draw(t, "number"))
			if code, answer, ok := asked(q.text(want, l)); !ok || code != want || answer != q.answer {
				t.Fatalf("%q, %q, %v; want %q", code, answer, ok, want)
			}
		})
		for _, text := range []string{
			"", "K7F3Q", q.text("", l), q.text("K7F3", l), q.text("K7F3Q ", l), q.text("K7F30", l), " " + q.text("K7F3Q", l),
			q.text("K7F3Q", l) + "\n", "no K7F3Q", strings.ToUpper(q.text("K7F3Q", l)),
		} {
			if code, answer, ok := asked(text); ok || code != "" || answer != "" {
				t.Errorf("%q names %q", text, code)
			}
		}
	}
}

func TestWordsForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{unknownSenderReply(1234, i18n.English), "Your numeric Telegram id is 1234."},
		{account(identity(1234), i18n.English), "Your numeric Telegram id is 1234."},
		{afterGap(9*time.Minute+50*time.Second, i18n.English),
			"for 10 minutes. What still waits for you is shown again below. If you pressed something"},
		{shownAgain("K7F3Q", i18n.English), "K7F3Q is shown again below"},
		{forwarded, "somebody else's words"},
		{help, "/stop all · cancel everything"},
		{clip(strings.Repeat("😀", 3000)), "😀…"},
	} {
		if !strings.Contains(c.got, c.want) || card.UTF16.Of(c.got) > maxText {
			t.Errorf("%q; want %q in it", c.got, c.want)
		}
	}
}
