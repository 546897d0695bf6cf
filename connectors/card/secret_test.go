package card_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/permissions"
)

// fake is n characters of a secret that nobody has: in order, so that no scanner takes it for one.
func fake(n int) string {
	const of = "0a1B2c3D4e5F6g7H8i9JkLmNoPqRsTuVwXyZ"
	return strings.Repeat(of, n/len(of)+1)[:n]
}

func hexadecimal(n int) string { return strings.Repeat("0123456789abcdef", n/16+1)[:n] }

// mask is what is shown of a secret.
func mask(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return fmt.Sprintf("‹secret, %d characters, sha256 %x›", len(secret), sum[:3])
}

func said(text string, o card.Options) string {
	r := request(permissions.KindPermission, func(r *permissions.Request) {
		r.Tags, r.Reason = []permissions.Tag{permissions.Network}, text
	})
	shown := card.Card(connectors.Prompt{Request: r}, o)
	_, shown, _ = strings.Cut(shown, "│ ")
	shown, _, _ = strings.Cut(shown, "\nan agent of daycared\n")
	return shown
}

// known are secrets of every shape. Each is put together here, so that this file holds none.
func known() map[string]string {
	return map[string]string{
		"Amazon key":              "AKIA" + "IOSFODNN7EXAMPLE",
		"Amazon session key":      "ASIA" + "IOSFODNN7EXAMPLE",
		"Google key":              "AIza" + fake(35),
		"Google client":           "GOCSPX-" + fake(28),
		"Google OAuth":            "ya29." + fake(60),
		"GitHub":                  "ghp_" + fake(36),
		"GitHub OAuth":            "gho_" + fake(36),
		"GitHub user":             "ghu_" + fake(36),
		"GitHub server":           "ghs_" + fake(36),
		"GitHub refresh":          "ghr_" + fake(76),
		"GitHub fine-grained":     "github_pat_" + fake(22) + "_" + fake(59),
		"GitLab":                  "glpat-" + fake(20),
		"Slack bot":               "xoxb-" + "123456789012-123456789012-" + fake(24),
		"Slack app":               "xapp-" + "1-A0123456789-1234567890-" + hexadecimal(64),
		"OpenAI, older":           "sk-" + fake(48),
		"OpenAI project":          "sk-proj-" + fake(48),
		"Anthropic":               "sk-ant-" + "api03-" + fake(86) + "-AA",
		"Stripe":                  "sk_live_" + fake(24),
		"Stripe test":             "rk_test_" + fake(99),
		"SendGrid":                "SG." + fake(22) + "." + fake(43),
		"Hugging Face":            "hf_" + fake(34),
		"npm":                     "npm_" + fake(36),
		"PyPI":                    "pypi-" + "AgEIcHlwaS5vcmc" + fake(100),
		"DigitalOcean":            "dop_v1_" + hexadecimal(64),
		"Shopify":                 "shpat_" + hexadecimal(32),
		"Vault":                   "hvs." + fake(90),
		"age":                     "AGE-SECRET-KEY-1" + strings.ToUpper(fake(58)),
		"Telegram bot":            "123456789:" + "AA" + fake(33),
		"JSON Web Token":          "eyJ" + fake(20) + ".eyJ" + fake(30) + "." + fake(43),
		"agent of ours":           "dcd_a_" + fake(43),
		"person of ours":          "dcd_u_" + fake(43),
		"a secret with an ending": "ghp_" + fake(36),
	}
}

func TestSecretsAreMasked(t *testing.T) {
	for name, secret := range known() {
		t.Run(name, func(t *testing.T) {
			for _, around := range []string{
				"%s", "before %s after", "TOKEN=%s", "--token=%s", `"%s"`, `'%s'`, `{"token":"%s","n":1}`, `-H "Authorization: Bearer %s"`,
				"https://u:%s@host/path", "a,%s,b", "\t%s\r", "one\n%s\nthree", "it is %s.", "%s %s",
			} {
				text := strings.ReplaceAll(around, "%s", secret)
				shown := said(text, card.Options{})
				if strings.Contains(shown, secret) || !strings.Contains(shown, mask(secret)) {
					t.Errorf("%q is shown as %q", text, shown)
				}
				if rest, want := strings.ReplaceAll(shown, mask(secret), "%s"), card.Lines(strings.ReplaceAll(text, secret, "%s")); rest !=
					strings.Join(want, "\n│ ") {
					t.Errorf("around the secret %q is shown instead of %q", rest, want)
				}
				if shown := said(text, card.Options{Reveal: true}); !strings.Contains(shown, secret) || strings.Contains(shown, "‹") {
					t.Errorf("revealed, %q is shown as %q", text, shown)
				}
			}
		})
	}
}

func TestWhatIsNotMasked(t *testing.T) {
	token, jwt := "ghp_"+fake(36), "eyJ"+fake(20)+".eyJ"+fake(30)+"."+fake(43)
	for name, text := range map[string]string{
		"too short":                "ghp_" + fake(35),
		"too long":                 "ghp_" + fake(300),
		"a letter too many":        "AKIA" + "IOSFODNN7EXAMPLE" + "X",
		"another alphabet":         "AKIA" + "iosfodnn7example",
		"a letter before":          "xghp_" + fake(36),
		"a dash before":            "-" + token,
		"a dash after":             token + "-",
		"half a JSON Web Token":    "eyJ" + fake(20) + "." + fake(43),
		"no key of scikit-learn":   "sk-estimator-html-doc-link-loaded-everywhere-at-once",
		"a long word":              strings.Repeat("secret", 20),
		"a hash":                   hexadecimal(64),
		"a UUID":                   "123e4567-e89b-12d3-a456-426614174000",
		"a path":                   "/usr/lib/" + fake(60),
		"ordinary base64":          base64.StdEncoding.EncodeToString([]byte(strings.Repeat("rm -rf /;", 20))),
		"password=hunter2":         "password=hunter2hunter2hunter2hunter2",
		"a variable":               "$" + token,
		"a substitution":           token + "$(rm)",
		"backticks":                "`" + token + "`",
		"a second command":         token + ";rm",
		"a pipe":                   token + "|sh",
		"a background command":     token + "&rm",
		"a redirection":            token + ">f",
		"an input":                 "<" + token,
		"a group":                  "(" + token + ")",
		"braces":                   "{" + token + "}",
		"a backslash":              token + `\`,
		"a pattern":                token + "*",
		"one character":            "?" + token,
		"a set":                    "[" + token + "]",
		"history":                  "!" + token,
		"a comment":                "#" + token,
		"a home":                   "~" + token,
		"a caret":                  "^" + token,
		"a percent sign":           "%" + token,
		"another letter":           "é" + token,
		"a space that is none":     "\u00a0" + token,
		"zero width":               token[:20] + "\u200b" + token[20:],
		"a mark":                   token + "\u0301",
		"over a space":             token[:20] + " " + token[20:],
		"over a line":              token[:20] + "\n" + token[20:],
		"over a quote":             token[:20] + `"` + token[20:],
		"a command in a token":     "eyJ" + fake(20) + ".$(rm)." + fake(43),
		"more than one word of it": jwt[:30] + " " + jwt[30:],
	} {
		t.Run(name, func(t *testing.T) {
			if shown := said(text, card.Options{}); strings.Contains(shown, "‹") {
				t.Errorf("%q is shown as %q", text, shown)
			}
		})
	}
}

// TestNoMaskHidesAHostOrAPath puts what has the shape of a secret where a host, a path or a part of one is expected: it is shown.
func TestNoMaskHidesAHostOrAPath(t *testing.T) {
	host, token := "hvs.xn--verm"+"gensberatung-pwb", "ghp_"+fake(36)
	jwt := "eyJ" + fake(20) + ".eyJ" + fake(30) + ".xn--verm" + "gensberatung-pwb"
	for name, text := range map[string]string{
		"a URL's":                     "curl -d @/etc/passwd https://" + host + "/x",
		"a URL's, with a name":        "curl https://me@" + host + "/x",
		"a URL's, with a password":    "curl https://me:secret@" + token + "/x",
		"a URL's first label":         "curl https://" + token + ".example.org",
		"of ssh":                      "ssh " + host,
		"of ssh, ended":               "ssh " + host + ".",
		"of ssh, in quotes":           `ssh "` + host + `"`,
		"of scp":                      "scp x me@" + host + ":/tmp",
		"of scp, without a name":      "scp x " + token + ":y",
		"of git":                      "git push " + host + ":x.git",
		"with a port":                 "curl " + token + ":8080",
		"with a path":                 "curl " + token + "/x",
		"an option's":                 "curl --proxy=" + host,
		"a JSON Web Token's shape":    "ssh " + jwt,
		"a label after others":        "ssh www." + token,
		"a path's end":                "rm -rf /srv/hvs.customer-database-production",
		"a path's end, of any shape":  "rm -rf /srv/" + token,
		"a path's beginning":          "rm -rf " + token + "/x",
		"a path that is one word":     "rm -rf glpat-customer-database-2",
		"a path that is one WORD":     "rm -rf hvs.Customer-Database-Store",
		"a path on another host":      "scp x host:" + token,
		"a volume":                    "docker run -v " + token + ":/x",
		"a file's ending":             "sh " + token + ".sh",
		"a word between a : and an @": "scp x:" + token + "@y z",
	} {
		for what, set := range map[string]func(*permissions.Request){
			"command": func(r *permissions.Request) {
				raw, _ := json.Marshal(map[string]string{"command": text})
				r.Kind, r.Tool, r.Input = permissions.KindTool, "run_command", raw
			},
			"details": func(r *permissions.Request) { r.Details = text },
			"message": func(r *permissions.Request) { r.Message = text },
		} {
			shown := card.Card(connectors.Prompt{Request: request(permissions.KindPermission, set)}, card.Options{})
			if strings.Contains(shown, "‹") {
				t.Errorf("%s in a %s:\n%s", name, what, shown)
			}
		}
	}
	for _, member := range []string{"path", "file_path", "cwd", "host", "url"} {
		r := request(permissions.KindTool, func(r *permissions.Request) {
			r.Tool, r.Input = "fetch", input(`{"`+member+`":"`+token+`"}`)
		})
		if shown := card.Wants(r); strings.Contains(shown, "‹") {
			t.Errorf("%s:\n%s", member, shown)
		}
	}
}

// TestNoMaskHidesAnArgument: in what runs, a token is masked only where its place says that it is a secret. Anywhere else it
// may be the name of what is deleted.
func TestNoMaskHidesAnArgument(t *testing.T) {
	token := "ghp_" + fake(36)
	for command, hides := range map[string]bool{
		"rm -rf %s":                               false,
		"rm -rf -- --token %s":                    false,
		"rm 'a b' \"%s\"":                         false,
		"cd x && rm -rf %s y":                     false,
		"rm token %s":                             false,
		"rm 'token: %s'":                          false,
		"rm TOKEN=%s":                             false,
		"rm \\\nTOKEN=%s":                         false,
		"TOKEN= %s":                               false,
		"DIR=%s rm -rf $DIR":                      false,
		"dd if=x of=%s":                           false,
		"gh --token-file %s":                      false,
		"gh --token-file=%s":                      false,
		"TOKEN_FILE=%s gh":                        false,
		"PWD=%s make":                             false,
		"ssh -i %s host":                          false,
		"curl -H 'Host: %s' x":                    false,
		"curl --key %s":                           false,
		"echo %s":                                 false,
		"curl https://api.example.org/%s":         false,
		"curl https://%s@example.org/x":           true,
		"git push https://x:%s@example.org/x.git": true,
		"GITHUB_TOKEN=%s gh pr list":              true,
		"cd x && A=1 GH_TOKEN='%s' gh":            true,
		"export OPENAI_API_KEY=\"%s\"":            true,
		"set -e\nGITHUB_PAT=%s\ngh":               true,
		"docker run -e AWS_ACCESS_KEY_ID=%s x":    true,
		"gh --token %s":                           true,
		"gh --auth-token=%s":                      true,
		"x -password '%s'":                        true,
		`curl -H "Authorization: Bearer %s" x`:    true,
		"curl --header='PRIVATE-TOKEN: %s' x":     true,
		"cat >.env <<E\nAPI_KEY=%s\nE":            true,
		"cat >.yaml <<E\n  token: \"%s\"\nE":      true,
		`curl -d '{"a":1, "token": "%s"}' x`:      true,
		"rm 'a;TOKEN=%s;'":                        false,
		"rm \"a && TOKEN=%s\"":                    false,
		"rm $x;%s;":                               false,
		"rsync -u host:%s x":                      false,
		"curl x; rsync -u host:%s x":              false,
		"curl $(rsync -u host:%s x)":              false,
		"rm curl -u a:%s":                         false,
		"rm 'curl -u a:%s'":                       false,
		"docker run -u %s x":                      false,
		"curl -o %s x":                            false,
		"curl https://x.example/?path=%s":         false,
		"curl https://x.example/token=%s":         false,
		"curl https://x.example/?token=%s/x":      false,
		"TOKEN=%s; gh pr list":                    true,
		"cd x;TOKEN=%s|gh":                        true,
		"(GH_TOKEN=%s&& gh)":                      true,
		"curl -u user:%s https://x.example":       true,
		"curl -su \"user:%s\" https://x.example":  true,
		"curl --user=%s: https://x.example":       true,
		"A=1 curl 'https://x/?a&b' -u user:%s":    true,
		"set -e\ncurl -s \\\n  -u user:%s \\\n x": true,
		"curl https://x.example/?token=%s":        true,
		"curl 'https://x/?a=1&access_token=%s&b'": true,
		"curl \"https://x/?api_key=%s#x\"":        true,
	} {
		text := strings.ReplaceAll(command, "%s", token)
		for what, more := range map[string]any{"a command": nil, "an input": 1} {
			if strings.Contains(command, "\n") && more != nil {
				continue // in JSON its rows are one, and it is shown in doubt
			}
			t.Run("B5/"+what+" "+command, func(t *testing.T) {
				members := map[string]any{"command": text}
				if more != nil {
					members["timeout"] = more
				}
				raw, err := json.Marshal(members)
				if err != nil {
					t.Fatal(err)
				}
				in := input(strings.ReplaceAll(string(raw), `\u0026`, "&"))
				shown := card.Wants(permissions.Request{Kind: permissions.KindTool, Tool: "Bash", Input: in})
				if strings.Contains(shown, mask(token)) != hides || strings.Contains(shown, token) == hides {
					t.Errorf("masked: %t; want %t:\n%s", !hides, hides, shown)
				}
			})
		}
	}
	for in, hides := range map[string]bool{
		`{"token":"%s"}`: true, `{"env":{"GITHUB_TOKEN":"%s"}}`: true, `{"headers":{"Authorization":"Bearer %s"}}`: true,
		`{"url":"https://me:%s@example.org/x"}`: true, `{"url":"https://example.org/x?a=1&token=%s"}`: true, `{"url":"%s"}`: false,
		`{"url":"https://%s/x"}`: false, `{"url":"https://me@%s/x"}`: false, `{"path":"/x?token=%s"}`: false,
		`{"name":"%s"}`: false, `{"args":["rm","%s"]}`: false, `{"args":["rm","--","TOKEN=%s"]}`: false, `"%s"`: false,
	} {
		raw := strings.ReplaceAll(in, "%s", token)
		shown := card.Wants(permissions.Request{Kind: permissions.KindTool, Tool: "x", Input: input(raw)})
		if strings.Contains(shown, mask(token)) != hides {
			t.Errorf("%s is shown as %s", raw, shown)
		}
	}
}

// TestWhatAuthorizesIsMasked: in a header of authorization, what follows the scheme is a secret whatever its shape, unless it could
// be words, a host or a path.
func TestWhatAuthorizesIsMasked(t *testing.T) {
	for header, hides := range map[string]bool{
		`-H "Authorization: Bearer %s"`: true, `-H 'Authorization: Basic %s'`: true, `--header="authorization: token %s" -v`: true,
		`-H "X-Note: Bearer %s"`: false, `-o "Authorization: Bearer %s"`: false, `Authorization: Bearer %s`: false,
	} {
		for token, random := range map[string]bool{
			"bXk6c2VjcmV0": true, "abc/DEF+012==": true, fake(40): true, "$TOKEN": false, "/etc/passwd": false, "a/b/c/d/e": false,
			"host.example": false, "short": false, "my-words-here": false, "x;rm": false,
		} {
			t.Run("G3/"+header+" "+token, func(t *testing.T) {
				command := "curl " + strings.ReplaceAll(header, "%s", token) + " https://x.example"
				raw, err := json.Marshal(map[string]string{"command": command})
				if err != nil {
					t.Fatal(err)
				}
				shown := card.Wants(permissions.Request{Kind: permissions.KindTool, Tool: "sh", Input: input(string(raw))})
				if want := hides && random; strings.Contains(shown, mask(token)) != want || strings.Contains(shown, token) == want {
					t.Errorf("masked: %t; want %t:\n%s", !want, want, shown)
				}
			})
		}
	}
}

// TestEveryURLsHostIsShown puts secrets into any part of a URL: its scheme and its host are on the card.
func TestEveryURLsHostIsShown(t *testing.T) {
	var parts []string
	for _, secret := range known() {
		parts = append(parts, secret)
	}
	slices.Sort(parts)
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom(append(parts, "x", "example.org", "me"))
		host := part.Draw(t, "host") + rapid.SampledFrom([]string{"", ".", ".com", ":8080"}).Draw(t, "more")
		scheme := rapid.SampledFrom([]string{"https://", "ssh://", "git+https://"}).Draw(t, "scheme")
		user := rapid.SampledFrom([]string{"", part.Draw(t, "user") + "@", "u:" + part.Draw(t, "password") + "@"}).Draw(t, "who")
		after := rapid.SampledFrom([]string{"", "/", "/" + part.Draw(t, "path"), "/x=" + part.Draw(t, "value")}).Draw(t, "after")
		shown := said("see "+scheme+user+host+after+" or not", card.Options{})
		if !strings.Contains(shown, "see "+scheme) || !strings.Contains(shown, host) {
			t.Fatalf("%s is hidden in %s", host, shown)
		}
	})
}

// TestSecretsAreMaskedEverywhere puts one in each place that holds an agent's words, and in those that hold a name.
func TestSecretsAreMaskedEverywhere(t *testing.T) {
	secret := "ghp_" + fake(36)
	call := func(tool, in string) func(*permissions.Request) {
		return func(r *permissions.Request) { r.Kind, r.Tool, r.Input = permissions.KindTool, tool, input(in) }
	}
	for name, set := range map[string]func(*permissions.Request){
		"reason":  func(r *permissions.Request) { r.Reason = secret },
		"message": func(r *permissions.Request) { r.Message = secret },
		"details": func(r *permissions.Request) { r.Details = "a\n" + secret },
		"command": call("run_command", `{"command":"curl -H 'X-Auth-Token: `+secret+`' x"}`),
		"input":   call("write_file", `{"content":"A=1\nB=`+secret+`\n","path":"x"}`),
		"deep":    call("x", strings.Repeat("[", 13)+`{"token":"`+secret+`"}`+strings.Repeat("]", 13)),
		"calls": func(r *permissions.Request) {
			r.Kind, r.Calls = permissions.KindTool, []permissions.Call{{N: 1, Tool: "x", Input: input(`{"api_key":"` + secret + `"}`)}}
		},
		"clarification": func(r *permissions.Request) {
			r.Kind, r.Message, r.Choices = permissions.KindClarification, secret, []string{"a", "b " + secret}
		},
	} {
		r := request(permissions.KindPermission, set)
		p := connectors.Prompt{Request: r}
		for what, shown := range map[string]string{
			"Card": card.Card(p, card.Options{Width: 120}), "Wants": card.Wants(r),
			"Reminder": strings.Join(reminder([]connectors.Prompt{p}, card.Options{}), "\n"),
		} {
			if strings.Contains(shown, secret) {
				t.Errorf("%s of a request with a secret in its %s shows it:\n%s", what, name, shown)
			}
		}
		if shown := card.Card(p, card.Options{}); !strings.Contains(shown, mask(secret)) {
			t.Errorf("the card of a request with a secret in its %s does not say so:\n%s", name, shown)
		}
		if shown := card.Card(p, card.Options{Reveal: true}); !strings.Contains(shown, secret) {
			t.Errorf("the card of a request with a secret in its %s does not reveal it:\n%s", name, shown)
		}
	}
	names := request(permissions.KindPermission, func(r *permissions.Request) { r.Agent, r.Host, r.Cwd = secret, secret, secret })
	if shown := card.Card(connectors.Prompt{Request: names, Code: secret}, card.Options{Heading: secret}); strings.Contains(shown, "‹") {
		t.Errorf("a name is masked:\n%s", shown)
	}
}

// pem is a private key that opens nothing: DER of the given length.
func pem(label string, size int) []string {
	der := append([]byte{0x30, 0x82, byte(size >> 8), byte(size)}, strings.Repeat("\x02", size)...)
	text := base64.StdEncoding.EncodeToString(der)
	lines := []string{"-----BEGIN " + label + "PRIVATE KEY-----"}
	for ; len(text) > 64; text = text[64:] {
		lines = append(lines, text[:64])
	}
	return append(lines, text, "-----END "+label+"PRIVATE KEY-----")
}

func TestPrivateKeysAreMasked(t *testing.T) {
	for _, label := range []string{"", "RSA ", "EC "} {
		lines := pem(label, 300)
		text := "here:\n" + strings.Join(lines, "\n") + "\nthere"
		for name, shown := range map[string]string{
			"text": said(text, card.Options{}), "of Windows": said(strings.ReplaceAll(text, "\n", "\r\n"), card.Options{}),
			"JSON": inputShown(t, text),
		} {
			for _, line := range lines[1 : len(lines)-1] {
				if strings.Contains(shown, line) || !strings.Contains(shown, mask(line)) {
					t.Errorf("%s shows the line %s:\n%s", name, line, shown)
				}
			}
			if !strings.Contains(shown, lines[0]) || !strings.Contains(shown, lines[len(lines)-1]) || !strings.Contains(shown, "there") {
				t.Errorf("%s shows too little:\n%s", name, shown)
			}
		}
	}
	open := "openssh-key-v1\x00" + strings.Repeat("x", 33)
	text := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + base64.StdEncoding.EncodeToString([]byte(open)) + "\n-----END OPENSSH PRIVATE KEY-----"
	if shown := said(text, card.Options{}); !strings.Contains(shown, "‹secret, 64 characters") {
		t.Errorf("a key of OpenSSH is shown:\n%s", shown)
	}
}

func inputShown(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"content": text})
	if err != nil {
		t.Fatal(err)
	}
	return card.Wants(request(permissions.KindTool, func(r *permissions.Request) { r.Tool, r.Input = "write_file", raw }))
}

// TestOnlyWholeKeysAreMasked: lines that could be anything are not hidden because somebody wrote the frame around them.
func TestOnlyWholeKeysAreMasked(t *testing.T) {
	good := pem("", 300)
	change := func(f func(lines []string)) string {
		lines := append([]string(nil), good...)
		f(lines)
		return strings.Join(lines, "\n")
	}
	command := strings.Repeat("/bin/reboot/", 6)[:64]
	for name, text := range map[string]string{
		"a command between the lines":   change(func(l []string) { l[2] = "rm -rf /" }),
		"a path that could be base64":   "-----BEGIN PRIVATE KEY-----\n" + command + "\n-----END PRIVATE KEY-----",
		"a key that is longer than its": change(func(l []string) { l[1] = "MIIC" + l[1][4:] }),
		"no end":                        change(func(l []string) { l[len(l)-1] = "" }),
		"another end":                   change(func(l []string) { l[len(l)-1] = "-----END RSA PRIVATE KEY-----" }),
		"a line that is too long":       change(func(l []string) { l[1], l[2] = l[1]+l[2], "" }),
		"lines of many lengths":         change(func(l []string) { l[1], l[2] = l[1][:60], l[1][60:]+l[2][:60] }),
		"a public key":                  strings.ReplaceAll(strings.Join(good, "\n"), "PRIVATE", "PUBLIC"),
	} {
		if shown := said(text, card.Options{}); strings.Contains(shown, "‹") {
			t.Errorf("%s: masked\n%s", name, shown)
		}
	}
	raw, err := json.Marshal(map[string]string{"command": strings.Join(good, "\n")})
	if err != nil {
		t.Fatal(err)
	}
	r := request(permissions.KindTool, func(r *permissions.Request) { r.Tool, r.Input = "sh", raw })
	if shown := card.Wants(r); strings.Contains(shown, "‹") {
		t.Errorf("lines of a command are masked:\n%s", shown)
	}
}
