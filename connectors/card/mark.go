package card

// Role is whose words a part of a text are.
type Role uint8

// The roles. Words that we put beside somebody's name or path, and the name, are ours.
const (
	Ours   Role = iota
	Action      // the exact action that is decided about
	Words       // what an agent says
)

// Mark says whose words a part of a text are: those from the byte Start up to, not including, the byte End of the UTF-8
// text. Marks come in order, do not overlap, leave nothing out, and two beside each other differ in role. Where a part
// fills several rows, the mark holds them whole, with the signs that begin them and the newlines between them.
type Mark struct {
	Role       Role
	Start, End int
}

// sign begins a row that somebody else's words fill.
func (r Role) sign() string {
	if r == Action {
		return signAction
	}
	return signWords
}

// marks are those of the text of rows.
func marks(rows []row) (all []Mark) {
	at := 0
	add := func(role Role, n int) {
		switch last := len(all) - 1; {
		case n == 0:
		case last >= 0 && all[last].Role == role:
			all[last].End += n
		default:
			all = append(all, Mark{role, at, at + n})
		}
		at += n
	}
	for i, r := range rows {
		if i > 0 && r.from == 0 {
			add(r.role, 1) // the newline
		} else if i > 0 {
			add(Ours, 1)
		}
		add(Ours, r.from)
		add(r.role, len(r.text)-r.from)
	}
	return all
}
