#!/usr/bin/env bash
# Makes a Debian package of a binary.
# usage: scripts/deb.sh BINARY [FOLDER]     DEB_COMPRESSION=none|gzip|xz|zstd (default xz)
#
# In it: the program, its completions and manual pages, a service that is not started by itself, and its settings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
binary=$1
folder=${2:-.}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d "${TMPDIR:-/tmp}/querent-deb.XXXXXX")
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

install -D -m 755 "$binary" "$root/usr/bin/querent"
install -D -m 644 deploy/querent.service "$root/lib/systemd/system/querent.service"
install -D -m 644 deploy/querent.toml "$root/etc/querent/querent.toml"
install -D -m 644 README.md "$root/usr/share/doc/querent/README.md"
install -D -m 644 LICENSE "$root/usr/share/doc/querent/copyright"
install -d "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
  "$root/usr/share/fish/vendor_completions.d" "$root/DEBIAN"
"$binary" completions bash >"$root/usr/share/bash-completion/completions/querent"
"$binary" completions zsh >"$root/usr/share/zsh/vendor-completions/_querent"
"$binary" completions fish >"$root/usr/share/fish/vendor_completions.d/querent.fish"
"$binary" man --folder "$root/usr/share/man/man1" >/dev/null
gzip -9n "$root"/usr/share/man/man1/*.1

# The newest symbols of the C library that the program asks for.
libc=$(grep -aoE 'GLIBC_2\.[0-9]+' "$binary" | sed 's/GLIBC_//' | sort -uV | tail -n 1)
cat >"$root/DEBIAN/control" <<END
Package: querent
Version: $version
Architecture: $architecture
Maintainer: Querent <querent@localhost>
Depends: libc6 (>= ${libc:-2.31}), libgcc-s1
Recommends: ca-certificates
Section: database
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Description: analytics engine that you can ask
 SQL, KQL and plain language over CSV, JSON, Parquet and Arrow files and DuckLake
 catalogs: a shell, a command line, and a server for Arrow Flight SQL, HTTP and MCP.
END
echo /etc/querent/querent.toml >"$root/DEBIAN/conffiles"

mkdir -p "$folder"
package=$folder/querent_${version}_$architecture.deb
dpkg-deb --root-owner-group -Z"${DEB_COMPRESSION:-xz}" --build "$root" "$package" >/dev/null
echo "$package"
