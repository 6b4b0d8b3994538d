package provision

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// Limits for the answers of a node to one request. Later results are only in the stream of reports.
const (
	responseMessages = 32
	responseAge      = time.Hour
)

// Permissions list everything that a user may do with NATS.
type Permissions struct {
	Publish   []string `json:"publish"`
	Subscribe []string `json:"subscribe"`
	// AllowResponses also permits answers to requests.
	AllowResponses *Responses `json:"allow_responses,omitempty"`
}

// Responses limits the number of answers to a request, and their time.
type Responses struct {
	Max     int            `json:"max"`
	Expires model.Duration `json:"expires"`
}

// ServerConfig returns the permissions as settings of a user in the configuration of nats-server. It
// permits only client connections. muster needs no other kind, and the protocols of leaf nodes and
// MQTT could be attacked.
func (p Permissions) ServerConfig() string {
	text := fmt.Sprintf("permissions: {\n  publish: {allow: [\n%s  ]}\n  subscribe: {allow: [\n%s  ]}\n", quotedSubjects(p.Publish), quotedSubjects(p.Subscribe))
	if r := p.AllowResponses; r != nil {
		text += fmt.Sprintf("  allow_responses: {max: %d, expires: %q}\n", r.Max, r.Expires)
	}

	return text + "}\n# Add \"WEBSOCKET\" for a user that connects by ws:// or wss://.\n" +
		fmt.Sprintf("allowed_connection_types: [%q]\n", jwt.ConnectionTypeStandard)
}

// quotedSubjects returns the quoted subjects, one per line.
func quotedSubjects(subjects []string) string {
	var b strings.Builder
	for _, s := range subjects {
		fmt.Fprintf(&b, "    %q\n", s)
	}

	return b.String()
}

// Claims returns the permissions, and the kind of connection, as the claims of a user.
func (p Permissions) Claims() jwt.UserPermissionLimits {
	claims := jwt.UserPermissionLimits{Limits: jwt.Limits{NatsLimits: jwt.NatsLimits{Subs: jwt.NoLimit, Data: jwt.NoLimit, Payload: jwt.NoLimit}}}
	claims.Pub.Allow, claims.Sub.Allow = p.Publish, p.Subscribe
	if r := p.AllowResponses; r != nil {
		claims.Resp = &jwt.ResponsePermission{MaxMsgs: r.Max, Expires: r.Expires.Std()}
	}
	claims.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard}

	return claims
}

// ClaimsJSON returns Claims as the JSON in a JWT.
func (p Permissions) ClaimsJSON() ([]byte, error) { return indentedJSON(p.Claims()) }

// discovery returns the subjects of NATS service discovery.
func discovery(n kvstore.Names) []string {
	var subjects []string
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		service := "$SRV." + verb
		subjects = append(subjects, service, service+"."+n.Service(), service+"."+n.Service()+".*")
	}

	return subjects
}
