package card

import (
	"regexp"
	"slices"
	"strings"
)

// shortestSecret is the length of the shortest secret that is known, in bytes.
const shortestSecret = 20

// shape is how one sort of secret is written: a prefix that nothing else has, and what comes after it.
type shape struct {
	prefix string
	rest   *regexp.Regexp
}

// shapes are the secrets that are known. A shape is here only if its makers publish it and its prefix is its own.
var shapes = slices.Concat(
	shapesOf(`[A-Z2-7]{16}`, "AKIA", "ASIA"),                                  // Amazon
	shapesOf(`[0-9A-Za-z_-]{35}`, "AIza"),                                     // Google API keys
	shapesOf(`[0-9A-Za-z_-]{28}`, "GOCSPX-"),                                  // Google OAuth clients
	shapesOf(`[0-9A-Za-z_-]{30,}`, "ya29."),                                   // Google OAuth
	shapesOf(`[0-9A-Za-z]{36,255}`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),   // GitHub
	shapesOf(`[0-9A-Za-z]{22}_[0-9A-Za-z]{59}`, "github_pat_"),                // GitHub, fine-grained
	shapesOf(`[0-9A-Za-z_-]{20,64}`, "glpat-", "gldt-", "glrt-", "glptt-"),    // GitLab
	shapesOf(`[0-9]+-[0-9A-Za-z-]{20,}`, "xoxb-", "xoxp-", "xoxa-", "xoxr-"),  // Slack
	shapesOf(`[0-9]+-[0-9A-Za-z-]{20,}`, "xoxs-", "xapp-"),                    // Slack
	shapesOf(`[0-9A-Za-z]{40,64}`, "sk-"),                                     // OpenAI, the older ones
	shapesOf(`[0-9A-Za-z_-]{40,255}`, "sk-proj-", "sk-svcacct-", "sk-admin-"), // OpenAI
	shapesOf(`[0-9A-Za-z_-]{40,255}`, "sk-ant-"),                              // Anthropic
	shapesOf(`[0-9A-Za-z]{24,255}`, "sk_live_", "sk_test_", "rk_live_"),       // Stripe
	shapesOf(`[0-9A-Za-z]{24,255}`, "rk_test_", "whsec_"),                     // Stripe
	shapesOf(`[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}`, "SG."),                   // SendGrid
	shapesOf(`[0-9A-Za-z]{34}`, "hf_"),                                        // Hugging Face
	shapesOf(`[0-9A-Za-z]{36}`, "npm_"),                                       // npm
	shapesOf(`[0-9A-Za-z_-]{60,}`, "pypi-AgEIcHlwaS5vcmc"),                    // PyPI
	shapesOf(`[0-9a-f]{64}`, "dop_v1_", "doo_v1_", "dor_v1_"),                 // DigitalOcean
	shapesOf(`[0-9a-fA-F]{32}`, "shpat_", "shpss_", "shpca_", "shppa_"),       // Shopify
	shapesOf(`[0-9A-Za-z_-]{24,}`, "hvs."),                                    // Vault
	shapesOf(`[0-9A-Z]{58}`, "AGE-SECRET-KEY-1"),                              // age
	shapesOf(`[0-9A-Za-z_-]{43}`, "dcd_a_", "dcd_u_", "dcd_m_"),               // our own
	shapesOf(`[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{20,}`, "eyJ"),                    // JSON Web Tokens
)

// telegram is a bot's token: its id and 35 characters.
var telegram = regexp.MustCompile(`^[0-9]{8,10}:AA[0-9A-Za-z_-]{33}`)

func shapesOf(rest string, prefixes ...string) (all []shape) {
	whole := regexp.MustCompile(`^` + rest)
	for _, prefix := range prefixes {
		all = append(all, shape{prefix, whole})
	}
	return all
}

// known is how many bytes at the start of text are a secret of a known shape, 0 if none. What follows it could not be
// part of it.
func known(text string) int {
	n := 0
	switch {
	case len(text) < shortestSecret:
		return 0
	case '0' <= text[0] && text[0] <= '9':
		n = len(telegram.FindString(text))
	default:
		for _, s := range shapes {
			if rest, ok := strings.CutPrefix(text, s.prefix); ok {
				if m := len(s.rest.FindString(rest)); m > 0 {
					n = max(n, len(s.prefix)+m)
				}
			}
		}
	}
	if n < len(text) && nameByte(text[n]) {
		return 0
	}
	return n
}
