package edits_test

import (
	"testing"

	"github.com/musterfleet/muster/resources/edits"
)

// configurations are files as programs install them. Each has a key that the file contains and a key that it lacks.
func configurations() map[string]struct {
	content    string
	properties properties
	// last is the last key of its section with its value.
	last, value any
} {
	return map[string]struct {
		content     string
		properties  properties
		last, value any
	}{
		"sshd_config": {"# What sshd reads. See sshd_config(5).\n\nInclude /etc/ssh/sshd_config.d/*.conf\n\n#Port 22\n#ListenAddress ::\n\nKbdInteractiveAuthentication no\nUsePAM yes\n\n# example\n#Match User anoncvs\n#\tX11Forwarding no\nAcceptEnv LANG LC_*\nSubsystem sftp\t/usr/lib/sftp-server\n",
			properties{"format": "keyvalue"}, "Subsystem", "sftp\t/usr/lib/sftp-server"},
		"php.ini": {"[PHP]\n\n;;;;;;;;;;;\n; About ; \n;;;;;;;;;;;\nengine = On\nprecision = 14\ndisable_functions =\n\n; A comment with = in it\nerror_reporting = E_ALL & ~E_DEPRECATED\n\n[Date]\n;date.timezone =\n\n[mail function]\nSMTP = localhost\nmail.add_x_header = Off\n",
			properties{"format": "ini", "section": "mail function"}, "mail.add_x_header", "Off"},
		"my.cnf": {"#\n# The server\n#\n[client-server]\n# port = 3306\nsocket = /run/mysqld/mysqld.sock\n\n[mysqld]\nskip-networking\nsql_mode = STRICT,\\\n  NO_ZERO_DATE\nbind-address=127.0.0.1\n\n!includedir /etc/mysql/conf.d/\n",
			properties{"format": "ini", "section": "client-server"}, "socket", "/run/mysqld/mysqld.sock"},
		".gitconfig": {"[user]\n\tname = Ann\n\temail = ann@example.net\n[alias]\n\tlg = log --graph \\\n\t\t--oneline\n[remote \"origin\"]\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\tfetch = +refs/tags/*:refs/tags/*\n[core]\n\tbare\n",
			properties{"format": "ini", "section": "user"}, "email", "ann@example.net"},
		"daemon.json": {daemon, properties{"format": "json"}, "mtu", 1500},
		"unit":        {"[Unit]\nDescription=An app\nAfter=network.target\n\n[Service]\nExecStart=/usr/bin/app \\\n  --port=80\nEnvironment=A=1\nEnvironment=B=2\n\n[Install]\nWantedBy=multi-user.target\n", properties{"format": "ini", "section": "Install"}, "WantedBy", "multi-user.target"},
		"grub":        {"# If you change this file, run update-grub.\n\nGRUB_DEFAULT=0\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet splash\"\n#GRUB_TERMINAL=console\nGRUB_CMDLINE_LINUX=\"\"\n", properties{"format": "keyvalue"}, "GRUB_CMDLINE_LINUX", `""`},
	}
}

// A key that comes and goes, and a last key that goes and comes, leave a file as it was.
func TestRealFilesStay(t *testing.T) {
	for name, c := range configurations() {
		t.Run(name, func(t *testing.T) {
			edit := func(content string, changes bool, p properties) string {
				t.Helper()
				part := partOf(t, settingType(), of(c.properties)(p))
				got := part.Edit(parse(t, content), []edits.Part{part})
				if got.Err != nil || (got.Change.Message != "") != changes {
					t.Fatalf("%v: %q, %v", p, got.Change.Message, got.Err)
				}
				return got.After.String()
			}
			absent := properties{"ensure": "absent", "key": "muster-test"}
			edit(c.content, false, absent)
			added := edit(c.content, true, properties{"key": "muster-test", "value": "1"})
			if got := edit(added, true, absent); got != c.content {
				t.Errorf("a new key leaves traces:\n%s", got)
			}
			edit(c.content, false, properties{"key": c.last, "value": c.value})
			removed := edit(c.content, true, properties{"ensure": "absent", "key": c.last})
			if got := edit(removed, true, properties{"key": c.last, "value": c.value}); name != "daemon.json" && got != c.content {
				t.Errorf("a key that comes back leaves traces:\n%s", got)
			}
		})
	}
}
