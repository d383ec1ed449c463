/**
 * Rehearses a release: `npm run rehearse-release -- [--suite NAME] [--final]`. Publishes all packages of the committed
 * HEAD with lerna to a registry on loopback. Then a minimal Debian in its own namespaces installs the command according
 * to the README, builds and uploads an image, and removes everything again according to docs/installing.md. Exits with
 * 0 if every command succeeded and nothing was left behind.
 *
 * --suite names the Debian that installs it, such as trixie. Default: this machine's release. --final fails at once if
 * a package.json lacks an address that CONTRIBUTING.md requires; without it, missing addresses are only listed.
 */
import { chmod, cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { codeBlocks } from '../test/docs/markdown.ts';
import { DEVICE_MAPPER_STAND_INS, hasDeviceMapper } from '../test/fixtures/device-mapper.ts';
import { startDebianProxy } from './debian-proxy.ts';
import { CHECKOUT, installBaseSystem, openMachineDirectory } from './fresh-machine/base-system.ts';
import { copyBaseSystem } from './fresh-machine/machine.ts';
import { runInside } from './fresh-machine/run-inside.ts';
import { missingAddresses } from './rehearse-release/addresses.ts';
import { publishHead } from './rehearse-release/registry.ts';

const { suite, final } = parseArgs({
  options: { suite: { type: 'string' }, final: { type: 'boolean' } },
}).values;

const missing = await missingAddresses(CHECKOUT);
for (const line of missing) console.error(`rehearse-release: ${line}; see "Releasing" in CONTRIBUTING.md`);
if (final && missing.length > 0) process.exit(1);

await using directory = await openMachineDirectory('rehearse-release');
await using registry = await publishHead(directory.path);
process.exitCode = (await rehearse()) ? 0 : 1;

async function rehearse(): Promise<boolean> {
  const root = join(directory.path, 'machine');
  const settings = await copyBaseSystem(await installBaseSystem(suite), root);
  const systemctl = join(root, 'usr/local/sbin/systemctl');
  await cp(join(import.meta.dirname, 'rehearse-release/systemctl.sh'), systemctl);
  await chmod(systemctl, 0o755);
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  if (!(await hasDeviceMapper())) {
    for (const name of ['kpartx', 'dmsetup']) {
      await cp(join(DEVICE_MAPPER_STAND_INS, name), join(root, 'usr/local/sbin', name));
    }
  }
  await using proxy = await startDebianProxy();
  const proxies = { http_proxy: proxy.url, no_proxy: '127.0.0.1' };
  const environment = { ...settings, ...proxies, HOME: '/root', npm_config_registry: registry.url };
  const machine = { root, user: false, checkout: '/root', home: '/root', path, environment };
  const { status, leftBehind } = await runInside(machine, ['sh', '-eu', '-c', await commands()]);
  if (status !== 0) console.log(`rehearse-release: a command failed with ${status}`);
  else for (const line of leftBehind) console.log(`rehearse-release: left behind: ${line}`);
  const good = status === 0 && leftBehind.length === 0;
  if (good) console.log('rehearse-release: every command succeeded, and nothing was left behind');
  return good;
}

/** Commands of the README, a wait for the image, and the commands that remove everything. */
async function commands(): Promise<string> {
  const [install = ''] = codeBlocks(await readFile(join(CHECKOUT, 'README.md'), 'utf8'), 'sh');
  const page = await readFile(join(CHECKOUT, 'docs/installing.md'), 'utf8');
  const remove = codeBlocks(page.slice(page.indexOf('## Removing')), 'sh')[0] ?? '';
  // doctor fails if only stand-ins create partition devices. Other problems are not accepted.
  const doctor = (await hasDeviceMapper())
    ? '$&'
    : `$1| tee /root/doctor $2
if grep '^  problem ' /root/doctor | grep --invert-match 'problem  device mapper: '; then exit 1; fi
rm /root/doctor`;
  return `set -x
${install.replace(/^(nodepool-builder doctor [^#\n]*)(.*)$/m, doctor)}
set +x
list() { nodepool-builder "$@" -c /etc/nodepool/nodepool.yaml; }
until list image-list --json | grep -q '"ready"'; do
  list dib-image-list
  if { list dib-image-list --json; list image-list --json; } | grep '"failed"'; then exit 1; fi
  sleep 10
done
set -x
nodepool-builder image-status -c /etc/nodepool/nodepool.yaml
qemu-img info /var/lib/libvirt/images/debian-latest.qcow2
cd /
${remove}
rm -r /var/lib/libvirt
rmdir /usr/local/lib/node_modules /usr/local/share/man/man1 # npm's own`;
}
