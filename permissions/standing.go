package permissions

// Standing is a request as it stands: its row, where it was shown and who waits. It is what the doors tell.
type Standing struct {
	Request Request
	Code    string // for people's eyes only: a door of agents leaves it out
	Copies  []Copy
	Waiting int
	Editor  bool // it may be answered in the asker's own editor as well, see [Reply]
}
