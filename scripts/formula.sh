#!/usr/bin/env bash
# Writes a Homebrew formula for the archives of a release, with their sums.
# usage: scripts/formula.sh FOLDER URL > querent.rb
#
# FOLDER has querent-TARGET.tar.gz of each target; URL is where they will be downloaded from. Homebrew itself has not read a
# formula of this script yet: the tests look at its text.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

[ $# -eq 2 ] || { sed -n '2,6s/^# //p' "$0"; exit 2; }
folder=$1
url=${2%/}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# archive TARGET INDENT: where an archive is, and its sum.
archive() {
  local file="$folder/querent-$1.tar.gz" sum
  [ -f "$file" ] || { echo "there is no $file" >&2; exit 1; }
  sum=$(sha256sum "$file" | cut -d' ' -f1)
  printf '%surl "%s/querent-%s.tar.gz"\n%ssha256 "%s"\n' "$2" "$url" "$1" "$2" "$sum"
}

mac_arm=$(archive aarch64-apple-darwin '      ')
linux_intel=$(archive x86_64-unknown-linux-gnu '      ')
linux_arm=$(archive aarch64-unknown-linux-gnu '      ')

cat <<END
class Querent < Formula
  desc "Analytics that you can ask: SQL, KQL and plain language over your files"
  homepage "$url"
  version "$version"
  license "Apache-2.0"

  on_macos do
    on_arm do
$mac_arm
    end
  end

  on_linux do
    on_intel do
$linux_intel
    end
    on_arm do
$linux_arm
    end
  end

  def install
    bin.install "querent"
    generate_completions_from_executable(bin/"querent", "completions")
    system bin/"querent", "man", "--folder", man1
  end

  service do
    run [opt_bin/"querent", "serve"]
    environment_variables QUERENT_DATA: var/"querent"
    keep_alive true
    log_path var/"log/querent.log"
    error_log_path var/"log/querent.log"
  end

  test do
    assert_match "2", shell_output("#{bin}/querent sql --data #{testpath}/data --output csv 'SELECT 1 + 1'")
  end
end
END
