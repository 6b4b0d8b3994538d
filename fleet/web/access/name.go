package access

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

const (
	// maxCalled is the maximum length of a displayed user name in bytes.
	maxCalled = 40
	// maxSubject is the maximum length of a subject in OpenID Connect; subjects up to maxShown bytes are shown
	// unchanged.
	maxSubject = 255
	maxShown   = 40
	// hashed is the prefix of longer subjects.
	hashed = "sha256:"
)

// called returns the name that a user has at the provider, empty for none. Users choose it, and it is not unique.
func called(claims map[string]any) string {
	name, _ := claims["preferred_username"].(string)
	if verified, _ := claims["email_verified"].(bool); name == "" && verified {
		name, _ = claims["email"].(string)
	}
	// Without parentheses a name cannot end like another subject.
	name = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '(' || r == ')' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))

	return strings.TrimSpace(strings.ToValidUTF8(name[:min(len(name), maxCalled)], ""))
}

// nameOf returns the name of a user of a provider: the chosen name and the unique subject. It never equals the name of
// a token.
func nameOf(called, subject string) string {
	if called == "" {
		return "oidc " + shown(subject)
	}

	return called + " (oidc " + shown(subject) + ")"
}

// shown returns the text for a subject: a digest if the subject is long or ambiguous.
func shown(subject string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '(' || r == ')' }
	if len(subject) <= maxShown && !strings.HasPrefix(subject, hashed) && !strings.ContainsFunc(subject, odd) {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))

	return hashed + base64.RawURLEncoding.EncodeToString(sum[:12])
}
