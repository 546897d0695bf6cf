// Package script is a model that plays turns from a file, for the demo and for tests. It keeps nothing: what it says
// follows from the prompt alone, so that a daemon that is killed and started again goes on rightly.
//
// A file is YAML, a list of turns. Of those whose conditions hold, the first is played; a turn without conditions always
// is. A prompt that none fits is refused.
//
//	turns:
//	  - name: write                 # letters, digits and underscores; required, and there once
//	    after: start                # the turn before it, or several: [a, b]; start: none was played yet
//	    said: (?i)release (\w+)     # the newest message is a person's, and matches
//	    say: I write the notes of {{match.1}}.
//	    calls:
//	      - tool: write_file
//	        input: {path: notes.md, content: "for {{match.1}}"}
//	  - name: smaller
//	    after: write
//	    result: denied.*"(.*)"      # the newest message is results, and one of them matches
//	    error: false                # and none of them is an error; true: one is
//	    say: You said {{match.1}}. I ask for less.
//	  - name: chat
//	    say: You wrote "{{said}}".
//
// Besides these there is asked, which matches what the person said last, however long ago. Conditions are regular
// expressions (package regexp), found anywhere in the text. Several messages of a person's that stand together are one
// text, a line each.
//
// In say, and in every string of an input, {{said}} is what the person said last, {{result}} all the newest results, a line
// each, {{result.2}} the second of them, and {{match.1}} what the first group matched, of result, else said, else asked.
//
// Which turn was played last shows in the ids of its calls; turns that only said something are found by playing the
// conversation again from the last call, or from its beginning.
package script
