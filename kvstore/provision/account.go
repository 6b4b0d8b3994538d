package provision

import (
	"cmp"
	"context"
	"encoding/json"
)

// userInfo is the subject on which a server with a system account answers who the user is.
const userInfo = "$SYS.REQ.USER.INFO"

// Account returns the name of the account of these credentials; with JWTs that may be
// its public key. It is empty where the server does not answer.
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
