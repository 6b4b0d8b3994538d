package provision

import (
	"cmp"
	"context"
	"encoding/json"
)

// userInfo is a subject on which every server with a system account returns the connected user.
const userInfo = "$SYS.REQ.USER.INFO"

// Account returns the account of the connection, which may be a public key if the server uses JWTs. It
// returns "" if the server does not answer.
func (p Provisioner) Account(ctx context.Context) string {
	reply, err := p.store.Request(ctx, userInfo, nil)
	if err != nil {
		return ""
	}
	var info struct {
		Data struct {
			Account string `json:"account"`
			Name    string `json:"account_name"`
		} `json:"data"`
	}
	if json.Unmarshal(reply.Data, &info) != nil {
		return ""
	}

	return cmp.Or(info.Data.Name, info.Data.Account)
}
