R=/srv/repo
mkdir -p $R /srv/next
pack() { # name version [more fields] [postinst]
  d=$(mktemp -d)
  mkdir -p $d/DEBIAN $d/etc/$1
  chmod 755 $d
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: t <t@example.net>\nHomepage: http://example.net/\n%bDescription: a test\n of packages\n' "$1" "$2" "${3-}" > $d/DEBIAN/control
  echo /etc/$1/c.conf > $d/DEBIAN/conffiles
  echo "v=$2" > $d/etc/$1/c.conf
  if [ -n "${4-}" ]; then
    printf '#!/bin/sh\n%s\n' "$4" > $d/DEBIAN/postinst
    chmod 755 $d/DEBIAN/postinst
  fi
  f=$(echo $1_$2_all.deb | sed s/:/%3a/)
  dpkg-deb --root-owner-group -Znone -b $d $R/$f > /dev/null
  rm -r $d
  dpkg-deb -f $R/$f >> $R/Packages
  printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' $f $(stat -c %s $R/$f) $(sha256sum $R/$f | cut -d' ' -f1) >> $R/Packages
}
# a prerelease, a release, and one that an epoch makes the newest
for v in 1.0~rc1-1 1.0-1 1:0.9-1; do pack muster-test $v; done
# its name is what the expression muster.test matches
pack mustertest 1.0
# names that differ by what apt reads as an instruction
pack muster-g 1.0
pack muster-g++ 1.0
# ten to be installed together
for i in 0 1 2 3 4 5 6 7 8 9; do pack muster-many$i 1.0; done
# those of the documentation
for v in 1.22.1-9 1.24.0-2; do pack nginx $v; done
pack tree 2.1.0-1
pack telnet 0.17-1
# two that do not want to be configured, one whose dependency is not there
pack muster-bad 1.0 '' 'echo it does not work >&2; [ -e /root/fixed ]'
pack muster-bad2 1.0 '' 'echo nor does this >&2; [ -e /root/fixed ]'
# one that changes the machine for as long as it is not told to go on
pack muster-slow 1.0 '' 'touch /root/begun; read line < /root/go'
pack muster-needs 1.0 'Depends: no-such-thing\n'
# one that another one depends on, which goes along with it
pack muster-lib 1.0
pack muster-tool 1.0 'Depends: muster-lib\n'
# a name that one provides, and one that two provide
pack muster-sole 1.0 'Provides: muster-only\n'
pack muster-real 1.0 'Provides: muster-virtual\n'
pack muster-other 1.0 'Provides: muster-virtual\nConflicts: muster-real\n'
# one that recommends another
pack muster-asks 1.0 'Recommends: muster-many9\n'
pack muster-next 1.0
# its next release, which is only installed when it is asked for
R=/srv/next
pack muster-next 2.0
printf 'Suite: next\nNotAutomatic: yes\nDate: %s\nSHA256:\n %s %s Packages\n' "$(date -uR)" $(sha256sum $R/Packages | cut -d' ' -f1) $(stat -c %s $R/Packages) > $R/Release
R=/srv/repo
printf 'Date: %s\nSHA256:\n %s %s Packages\n' "$(date -uR)" $(sha256sum $R/Packages | cut -d' ' -f1) $(stat -c %s $R/Packages) > $R/Release
chmod -R a+rX $R /srv/next
rm -f /etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:$R ./" > /etc/apt/sources.list
echo "deb [trusted=yes] file:/srv/next ./" >> /etc/apt/sources.list
echo 'Acquire::Retries "0";' > /etc/apt/apt.conf.d/99retries
apt-get update -q
