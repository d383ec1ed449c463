// Only in test:all: it needs zsh and fish.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createProgram } from '../../packages/nodepool-builder/src/commands/main.ts';
import { ROOT } from '../docs/markdown.ts';
import { programCommand } from '../fixtures/builder-process.ts';
import { runCommand } from '../fixtures/command-outcome.ts';
import { setUp } from '../fixtures/set-up.ts';

let directory: string;
let env: NodeJS.ProcessEnv;

setUp(async (undo) => {
  directory = await mkdtemp(join(tmpdir(), 'completion-'));
  undo(() => rm(directory, { recursive: true, force: true }));
  await Promise.all([mkdir(join(directory, 'bin')), mkdir(join(directory, 'images'))]);
  env = { ...process.env, HOME: directory, TERM: 'dumb', PATH: `${directory}/bin:${process.env.PATH}` };
  const program = join(directory, 'bin/program.mjs');
  const main = join(ROOT, 'packages/nodepool-builder/src/commands/main.ts');
  await writeFile(
    program,
    `import { main } from '${main}';\nprocess.exitCode = await main(process.argv.slice(2));\n`,
  );
  const [node, args] = programCommand(program);
  const command = join(directory, 'bin/nodepool-builder');
  await writeFile(command, `#!/bin/sh\nexec '${node}' ${args.join(' ')} "$@"\n`);
  await chmod(command, 0o755);
  const site = {
    diskimages: [
      { name: 'debian-bookworm' },
      { name: 'debian-base', abstract: true },
      { name: 'x$(touch harm)' },
    ],
    providers: [{ name: 'openstack-one' }, 5],
  };
  await writeFile(join(directory, 'site.yaml'), JSON.stringify(site));
  await writeFile(join(directory, 'disk image.raw'), '');
  for (const [shell, file] of [
    ['bash', 'completion.bash'],
    ['zsh', '_nodepool-builder'],
    ['fish', 'completion.fish'],
  ] as const) {
    const { code, stdout, stderr } = await runCommand('completion', shell);
    assert.deepEqual([code, stderr], [0, '']);
    await writeFile(join(directory, file), stdout);
  }
});

/** Typed lines, where `→` is the Tab key, and the arguments of the completed command line. */
const LINES: readonly (readonly [typed: string, args: readonly string[]])[] = [
  ['rebui→ -c si→ deb→', ['rebuild', '-c', 'site.yaml', 'debian-bookworm']],
  [
    '-c site.yaml image-upload x --prov→ ope→',
    ['-c', 'site.yaml', 'image-upload', 'x', '--provider', 'openstack-one'],
  ],
  ['-c site.yaml rollback x→', ['-c', 'site.yaml', 'rollback', 'x$(touch harm)']],
  ['build --form→ qco→', ['build', '--format', 'qcow2']],
  ['rebuild --config=si→ deb→', ['rebuild', '--config=site.yaml', 'debian-bookworm']],
  ['serve --log-lev→ deb→', ['serve', '--log-level', 'debug']],
  ['gearmand --allow-sh→', ['gearmand', '--allow-shutdown']],
  ['validate si→ --stri→', ['validate', 'site.yaml', '--strict']],
  ['convert di→', ['convert', 'disk image.raw']],
  ['help rollb→', ['help', 'rollback']],
  ['completion zs→', ['completion', 'zsh']],
];

/**
 * Types lines into an interactive shell on a terminal. Returns the command's arguments for each line.
 */
async function type(shell: string, setup: string): Promise<readonly string[]> {
  const terminal = spawn('script', ['-qec', shell, '/dev/null'], { cwd: directory, env });
  const lines = LINES.map(([typed]) => `nodepool-builder ${typed.replaceAll('→', '\t')}\n`);
  terminal.stdin.end(`${setup}\n${lines.join('')}exit\n`);
  const [output] = await Promise.all([text(terminal.stdout), once(terminal, 'close')]);
  return [...output.matchAll(/GOT<(.*)>GOT/g)].map(([, args = '']) => args);
}

/**
 * Shell function for bash and zsh that replaces the command: it prints its arguments, but passes completion to the
 * command.
 */
const PRINT = `nodepool-builder() {
  if [[ $1 == complete ]]; then command nodepool-builder "$@"; else printf 'GO''T<'; printf '%s|' "$@"; echo '>GO''T'; fi
}`;

const EXPECTED = LINES.map(([, args]) => args.map((arg) => `${arg}|`).join(''));

describe('the Tab key', () => {
  it('the Tab key completes command lines in bash', async () => {
    const setup = `PS1='$ '; source completion.bash\n${PRINT}`;
    assert.deepEqual(await type('bash --norc --noprofile -i', setup), EXPECTED);
  });

  it('the Tab key completes command lines in zsh', async () => {
    const setup = `PS1='$ '; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D
zstyle ':completion:*' insert-tab false
${PRINT}`;
    assert.deepEqual(await type('zsh -f -i', setup), EXPECTED);
  });

  it('the Tab key completes command lines in fish', async () => {
    for (const [typed, args] of LINES) {
      const fragment = typed.slice(0, typed.lastIndexOf('→')).split(' ').at(-1);
      const before = [...args.slice(0, -1).map((arg) => `'${arg}'`), fragment].join(' ');
      const candidates = await fish(
        `complete -C ${JSON.stringify(`nodepool-builder ${before}`).replaceAll('$', '\\$')}`,
      );
      assert.deepEqual(
        candidates.map((candidate) => candidate.split('\t')[0]),
        [args.at(-1)],
        typed,
      );
    }
  });
});

async function fish(script: string): Promise<readonly string[]> {
  const code = `source completion.fish; ${script}`;
  const { stdout } = await promisify(execFile)('fish', ['--no-config', '-c', code], { cwd: directory, env });
  return stdout.trim().split('\n');
}

describe('the candidates', () => {
  it('the candidates for completion have descriptions in fish', async () => {
    assert.deepEqual(await fish("complete -C 'nodepool-builder rollb'"), [
      'rollback\tgo back to the previous image',
    ]);
  });

  it('the candidates for completion are all commands, and all options of each', async () => {
    const program = await createProgram();
    const commands = program.createHelp().visibleCommands(program);
    const found = (await fish("complete -C 'nodepool-builder '")).map((line) => line.replace(/\t.*/, ''));
    assert.deepEqual(found.toSorted(), commands.map((command) => command.name()).toSorted());
    for (const command of commands) {
      const options = command
        .createHelp()
        .visibleOptions(command)
        .flatMap(({ long }) => long ?? []);
      const offered = await fish(`complete -C 'nodepool-builder ${command.name()} --'`);
      assert.deepEqual(
        offered.flatMap((line) => /^--\S+/.exec(line) ?? []).toSorted(),
        options.toSorted(),
        command.name(),
      );
    }
  });

  it('completion runs no command that a name contains', () => {
    assert.ok(!existsSync(join(directory, 'harm')));
  });

  it('completion has no candidates if the file cannot be read', async () => {
    const config = join(directory, 'none.yaml');
    const { code, stdout, stderr } = await runCommand('complete', '--', 'rebuild', '-c', config, '');
    assert.deepEqual([code, stdout, stderr], [0, '', '']);
  });
});
