package permissions

import "testing"

func TestUnknownSendersThatAreNotKeptAreCounted(t *testing.T) {
	if n := (UnknownSenders{List: make([]UnknownSender, 3), More: 4}).Count(); n != 7 {
		t.Errorf("%d strangers; want 7", n)
	}
}
