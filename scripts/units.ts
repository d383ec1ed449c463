/**
 * Runs the units in examples/systemd under a real systemd: `npm run units [-- --exceptions]`. It is the first process
 * of its own namespaces, on a minimal Debian. Exits with 0 if the daemons start, reload and stop, their journal has
 * priorities, disk-image-create builds an image under the restrictions of a builder, the configurations of
 * examples/all-in-one and examples/many-hosts work under their units, and the watchdog restarts a hanging manager, and
 * only then.
 *
 * --exceptions also shows that each restriction which the builder's unit omits would make a build fail, or change it.
 * That takes some minutes more.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readmePackages } from '../test/docs/debian-packages.ts';
import { codeBlocks, readPage } from '../test/docs/markdown.ts';
import { CHECKOUT, installBaseSystem, openMachineDirectory } from './fresh-machine/base-system.ts';
import { copyBaseSystem } from './fresh-machine/machine.ts';
import { run } from './fresh-machine/run.ts';

await using directory = await openMachineDirectory('units');
const root = join(directory.path, 'machine');

/** Timeout in seconds. */
const TIMEOUT = 400;

const CONFIGURATION = `images-dir: /opt/nodepool/images
elements-dir: /opt/checkout/test/elements
gearman-servers: [{host: 127.0.0.1}]
diskimages:
  - {name: docs, builder: command, command: [truncate, -s, 1M, '{output.raw}'], formats: [raw]}
  - {name: mini, elements: [mini-os], env-vars: {MINI_MARK: built under systemd}}
  - {name: broken, builder: command, command: [sh, -xc, exit 3], formats: [raw]}
providers:
  - name: local
    type: directory
    directory: /var/lib/libvirt/images
    image-type: raw
    images: [{name: docs, diskimage: docs}, {name: mini, diskimage: mini}]
`;

/** Packages of a host in the README, the busybox of the image, and a tool that adds the address of many-hosts. */
const PACKAGES = ['systemd', 'busybox-static', 'iproute2', ...(await readmePackages())];

const group = makeControlGroup();
try {
  await prepare();
  await runUnits();
  console.log(
    'units: the daemons start, build, reload and stop, the examples work, and the watchdog restarts a manager that hangs',
  );
} finally {
  await removeControlGroup();
}

async function prepare(): Promise<void> {
  const environment = await copyBaseSystem(await installBaseSystem(), root);
  const inside = (...command: readonly string[]): Promise<void> =>
    run('env', [
      ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
      'chroot',
      root,
      ...command,
    ]);
  // Nothing is started where systemd does not run yet.
  writeFileSync(join(root, 'usr/sbin/policy-rc.d'), '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  await inside('apt-get', '-q', 'update');
  await inside('apt-get', '-q', 'install', '--yes', '--no-install-recommends', ...PACKAGES);
  cpSync(process.execPath, join(root, 'usr/local/bin/node'));
  const program = '/opt/checkout/packages/nodepool-builder/bin/nodepool-builder.js';
  const command = `#!/bin/sh\nexec node ${program} "$@"\n`;
  writeFileSync(join(root, 'usr/local/bin/nodepool-builder'), command, { mode: 0o755 });
  const units = join(root, 'etc/systemd/system');
  for await (const unit of glob('*.service', { cwd: join(CHECKOUT, 'examples/systemd') })) {
    cpSync(join(CHECKOUT, 'examples/systemd', unit), join(units, unit));
  }
  writeFileSync(join(units, 'test.target'), '[Unit]\nDescription=Test\nDefaultDependencies=no\n');
  for (const path of ['etc/nodepool', 'opt/nodepool/images', 'var/lib/libvirt/images']) {
    mkdirSync(join(root, path), { recursive: true });
  }
  writeFileSync(join(root, 'etc/nodepool/nodepool.yaml'), CONFIGURATION);
  for (const script of ['commands.sh', 'examples.sh', 'exceptions.sh']) {
    cpSync(join(import.meta.dirname, 'units', script), join(root, 'root', script));
  }
  // The machine's own network has no downloads.
  await inside('apt-get', '-q', 'install', '--yes', '--download-only', 'gearman-job-server');
  const [manyHosts = ''] = codeBlocks(await readPage('examples/many-hosts/README.md'), 'sh');
  writeFileSync(join(root, 'root/many-hosts.sh'), manyHosts);
}

/** Runs systemd in its own control group and namespaces, and the commands next to it. */
async function runUnits(): Promise<void> {
  const namespaces = ['--cgroup', '--mount', '--net', '--pid', '--ipc', '--uts', '--fork', '--kill-child'];
  const enter = ['sh', join(import.meta.dirname, 'units/enter.sh'), root, CHECKOUT];
  // The control group comes first, because systemd moves and removes the groups below its own.
  const script = 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"';
  const command = ['unshare', ...namespaces, ...enter];
  const child = spawn('sh', ['-eu', '-c', script, 'sh', group, ...command], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(child, 'exit');
  try {
    const pid = await systemdOf(child);
    const spaces = ['--mount', '--net', '--pid', '--ipc', '--uts', '--cgroup', '--root', '--wd'];
    const proofs = process.argv.includes('--exceptions') ? ['exceptions.sh'] : [];
    for (const commands of ['commands.sh', 'examples.sh', ...proofs]) {
      const limited = ['timeout', `${TIMEOUT}`, 'sh', join('/root', commands)];
      await run('nsenter', [`--target=${pid}`, ...spaces, ...limited]);
    }
  } finally {
    child.kill('SIGKILL'); // ends systemd and everything that it runs
    await ended;
  }
}

/** Returns the id of systemd, the child of unshare, once it accepts commands. */
async function systemdOf(unshare: ChildProcess): Promise<number> {
  while (unshare.exitCode === null) {
    const found = readFileSync(`/proc/${unshare.pid}/task/${unshare.pid}/children`, 'utf8').trim();
    const isSystemd = found !== '' && readFileSync(`/proc/${found}/comm`, 'utf8') === 'systemd\n';
    if (isSystemd && existsSync(`/proc/${found}/root/run/systemd/private`)) return Number(found);
    await delay(100);
  }
  throw new Error('systemd does not start');
}

/** Creates a control group of version 2 below the root, wherever that is mounted. */
function makeControlGroup(): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const mount = mounts.find((line) => line.includes(' - cgroup2 '))?.split(' ')[4];
  if (mount === undefined) throw new Error('this machine has no control groups of version 2');
  const path = join(mount, `nodepool-builder-units-${process.pid}`);
  mkdirSync(path);
  return path;
}

async function removeControlGroup(): Promise<void> {
  const groups: string[] = [];
  for await (const path of glob('**/cgroup.procs', { cwd: group })) groups.push(join(group, path, '..'));
  for (const path of groups.toSorted((one, other) => other.length - one.length)) {
    // The last process in it may still be ending.
    while ((await readFile(join(path, 'cgroup.events'), 'utf8')).includes('populated 1')) await delay(20);
    rmdirSync(path);
  }
}
