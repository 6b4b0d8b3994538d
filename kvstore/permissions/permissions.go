// Package permissions returns what nodes and operators may do with NATS, and the
// accounts that keep them apart.
package permissions

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// A node may send this many answers to one request, for this long; later ones are
// in the stream of reports only.
const (
	responseMessages = 32
	responseAge      = time.Hour
)

// Permissions are all that a user may do with NATS.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// AllowResponses are the answers to requests, in addition.
	AllowResponses *Responses `json:"allow_responses,omitempty"`
}

// Responses are how many answers one request may have, and for how long.
type Responses struct {
	Max     int            `json:"max"`
	Expires model.Duration `json:"expires"`
}

// ServerConfig returns the permissions as a block for a user in the configuration
// of nats-server.
func (p Permissions) ServerConfig() string {
	text := fmt.Sprintf("permissions: {\n  publish: {allow: [\n%s  ]}\n  subscribe: {allow: [\n%s  ]}\n", quoted(p.Publish), quoted(p.Subscribe))
	if r := p.AllowResponses; r != nil {
		text += fmt.Sprintf("  allow_responses: {max: %d, expires: %q}\n", r.Max, r.Expires)
	}

	return text + "}\n"
}

// quoted returns the subjects, one a line.
func quoted(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "    %q\n", s)
	}

	return b.String()
}

// Claims returns the permissions as the claims of a user.
func (p Permissions) Claims() jwt.Permissions {
	claims := jwt.Permissions{Pub: jwt.Permission{Allow: p.Publish}, Sub: jwt.Permission{Allow: p.Subscribe}}
	if r := p.AllowResponses; r != nil {
		claims.Resp = &jwt.ResponsePermission{MaxMsgs: r.Max, Expires: r.Expires.Std()}
	}

	return claims
}

// ClaimsJSON returns Claims as the JSON in a JWT.
func (p Permissions) ClaimsJSON() ([]byte, error) { return indented(p.Claims()) }

// discovery returns the subjects by which the micro service of nodes is discovered.
func discovery(n kvstore.Names) []string {
	var subjects []string
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		service := "$SRV." + verb
		subjects = append(subjects, service, service+"."+n.Service(), service+"."+n.Service()+".*")
	}

	return subjects
}
