R=/srv/repo
B=/srv/build
mkdir -p $R $B /etc/yum.repos.d /etc/dnf/vars /etc/rpm
# Debian's rpm keeps its database in the home directory otherwise
echo '%_dbpath /var/lib/rpm' > /etc/rpm/macros.dbpath
echo 39 > /etc/dnf/vars/releasever
printf 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=39\n' > /etc/os-release
pack() { # name epoch version release [more fields]
  cat > $B/$1.spec <<S
Name: $1
Epoch: $2
Version: $3
Release: $4
Summary: a test
License: none
URL: http://example.net/
BuildArch: noarch
${5-}
%description
t
%install
mkdir -p %{buildroot}/opt/$1
echo $2:$3-$4 > %{buildroot}/opt/$1/version
%files
/opt/$1/version
S
  rpmbuild -bb --quiet --define "_topdir $B/top" --define "_rpmdir $R" $B/$1.spec > $B/log 2>&1 || { cat $B/log; exit 1; }
}
# a prerelease, releases, and one that an epoch makes the newest
pack muster-test 0 1.0~rc1 1
pack muster-test 0 1.0 1
pack muster-test 0 2.0 1
pack muster-test 1 0.9 1
# several to be installed together
for i in 0 1 2; do pack muster-many$i 0 1.0 1; done
pack muster-needs 0 1.0 1 'Requires: no-such-thing'
# one that another one depends on, which goes along with it
pack muster-lib 0 1.0 1
pack muster-tool 0 1.0 1 'Requires: muster-lib'
pack muster-real 0 1.0 1 'Provides: muster-virtual'
# scripts that fail, and what stands for their shell
pack muster-shell 0 1.0 1 'Provides: /bin/sh'
pack muster-bad 0 1.0 1 '%pre
echo it does not work
exit 3'
pack muster-bad2 0 1.0 1 '%pre
echo nor does this
exit 3'
# one that is installed although its script fails
pack muster-post 0 1.0 1 '%post
echo it is not set up
exit 3'
# one that changes the machine for as long as it is not told to go on
pack muster-slow 0 1.0 1 '%pre
touch /root/begun
read line < /root/go'
createrepo_c -q $R
printf '[muster]\nname=muster\nbaseurl=file://%s\nenabled=1\ngpgcheck=0\n' $R > /etc/yum.repos.d/muster.repo
rpm --initdb
