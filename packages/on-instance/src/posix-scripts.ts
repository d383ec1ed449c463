import { readFile } from 'node:fs/promises';
import { LIST_PACKAGES } from '@nodepool-builder/image-builder/internal';
import type { ScriptLanguage } from './script-language.ts';

/** Directory of nodepool's scripts, which the ready scripts of its nodes expect. */
const SCRIPT_DIRECTORY = '/opt/nodepool-scripts';

/**
 * First lines of each script. Logins without a terminal may have a very short PATH. The script removes its file,
 * because a step may contain secrets. The open file remains readable.
 */
const BEGINNING = `set -e
rm -f -- "$0"
export PATH=/usr/local/sbin:/sbin:/usr/sbin:/usr/local/bin:/bin:/usr/bin
`;

/** File with the process group of the running step, which a resumed build ends. */
const GROUP_FILE = '.nodepool-builder/group';

/** The nodepool daemon writes to /etc/nodepool on nodes, without root. */
const PREPARE = `${BEGINNING}
if command -v cloud-init >/dev/null; then cloud-init status --wait >/dev/null 2>&1 || :; fi
if group=$(cat ${GROUP_FILE} 2>/dev/null) && grep -qs nodepool-builder "/proc/$group/cmdline"; then
  kill -KILL -- "-$group" || :
fi
mkdir -p .nodepool-builder/scripts /opt /etc/nodepool
rm -rf ${SCRIPT_DIRECTORY}
mv .nodepool-builder/scripts ${SCRIPT_DIRECTORY}
chmod -R a+rx ${SCRIPT_DIRECTORY}
chmod 0777 /etc/nodepool
`;

const POWER_OFF = `${BEGINNING}
rm -rf .nodepool-builder
sync
poweroff || shutdown -h now || halt -p
`;

/** Scripts for a POSIX shell. */
export const POSIX_SCRIPTS: ScriptLanguage = {
  scriptDirectory: SCRIPT_DIRECTORY,
  extension: '',
  // "exec" makes the script the leader of the process group of sshd
  command: (path, username, asAdministrator) =>
    asAdministrator && username !== 'root' ? `exec sudo -n sh ${path}` : `exec sh ${path}`,
  prepare: PREPARE,
  step: (run, environment) => `${BEGINNING}
echo $$ > ${GROUP_FILE}
${exports(environment)}
cd ${SCRIPT_DIRECTORY}
${run}
`,
  listPackages: async () => BEGINNING + (await readFile(LIST_PACKAGES, 'utf8')),
  clean: (publicKey) => BEGINNING + cleanPosix(publicKey),
  powerOff: POWER_OFF,
};

/** Quotes any text for a POSIX shell. */
export function shellLiteral(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function exports(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}=${shellLiteral(value)}`)
    .join('\n');
}

/**
 * Part of a script that removes data that must not be in an image: identities of the machine, the build's login, and
 * logs. It runs as root in the user's home directory.
 *
 * Host keys stay if the system does not generate new ones, because sshd does not start without them. Units for the
 * first boot, such as Debian 13's, do not run in the image, because systemd treats no boot with an empty machine-id as
 * the first.
 *
 * @param publicKey key of the build in base64; absent if it belongs to the base image
 */
function cleanPosix(publicKey: string | undefined): string {
  return `
work=$PWD/.nodepool-builder
if command -v cloud-init >/dev/null; then
  cloud-init clean --logs >/dev/null 2>&1 || rm -rf /var/lib/cloud/instance /var/lib/cloud/instances
fi

set -- /lib/systemd/system/*keygen* /usr/lib/systemd/system/*keygen* /etc/systemd/system/*keygen*
if command -v cloud-init >/dev/null || [ -n "$(grep -Ls '^ConditionFirstBoot=' "$@")" ]
then rm -f /etc/ssh/ssh_host_*
else echo 'the SSH host keys stay: nothing here makes new ones when the image boots'
fi

[ ! -e /etc/machine-id ] || : > /etc/machine-id
[ -L /var/lib/dbus/machine-id ] || rm -f /var/lib/dbus/machine-id
rm -f /var/lib/systemd/random-seed /etc/udev/rules.d/70-persistent-net.rules
rm -f /var/lib/dhcp/*.leases /var/lib/NetworkManager/*.lease

mkdir -p /var/log
rm -rf /var/log/journal/*
find /var/log -type f \\( -name '*.gz' -o -name '*.xz' -o -name '*.old' -o -name '*.[0-9]' \\) -exec rm -f {} +
find /var/log -type f -exec sh -c 'for file; do : > "$file"; done' sh {} +

for home in /root /home/* "$PWD"; do
  rm -f "$home"/.*_history "$home/.lesshst" "$home/.viminfo" "$home/.wget-hsts"
${publicKey === undefined ? '' : removeKey(publicKey)}done

rmdir /opt/nodepool-scripts 2>/dev/null || :
rm -rf "$work"
sync
`;
}

/** Edits the file in place, so that it keeps its owner. */
function removeKey(publicKey: string): string {
  return `  keys=$home/.ssh/authorized_keys
  if [ -f "$keys" ]; then
    others=$(grep -vF '${publicKey}' "$keys" || :)
    if [ -n "$others" ]; then printf '%s\\n' "$others" > "$keys"; else rm -f "$keys"; fi
  fi
`;
}
