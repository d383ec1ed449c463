// Not a unit test: starts commands, because the streams of a test process cannot be replaced
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { openSync } from 'node:fs';
import { describe, it } from 'node:test';
import { DELETING_COMMANDS } from '../../src/commands/command-table.ts';
import { createProgram } from '../../src/commands/main.ts';

const program = await createProgram();
const names = program.commands.map((command) => command.name());

describe('--help', () => {
  for (const command of [program, ...program.commands]) {
    it(`the help for ${command.name()} fits a terminal of 80 columns`, () => {
      let help = '';
      command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 });
      command.outputHelp();
      assert.deepEqual(
        help.split('\n').filter((line) => line.length > 80),
        [],
      );
    });
  }
});

/** Output of commander for a wrong command. */
async function errorOf(name: string): Promise<string> {
  let error = '';
  const fresh = await createProgram();
  fresh.configureOutput({ writeErr: (text) => (error += text) });
  await assert.rejects(fresh.parseAsync([name], { from: 'user' }));
  return error;
}

describe('the error for an unknown command', () => {
  it('the error for an unknown command never suggests one that deletes images', async () => {
    const typos = [...DELETING_COMMANDS].flatMap((name) => [
      ...Array.from(name, (_letter, index) => name.slice(0, index) + name.slice(index + 1)),
      `${name}s`,
      name.replaceAll('-', ''),
    ]);
    for (const typo of [...typos, 'delete', 'pauze', 'purge'].filter((one) => !names.includes(one))) {
      const [, hint = ''] = /Did you mean (.*)/.exec(await errorOf(typo)) ?? [];
      const suggested = hint.match(/[\w-]+/g) ?? [];
      assert.deepEqual(
        suggested.filter((name) => DELETING_COMMANDS.has(name)),
        [],
        typo,
      );
    }
  });

  it('the error for an unknown command suggests the nearest one, or one that ends with the word', async () => {
    assert.match(await errorOf('validat'), /^.*unknown command 'validat'\n\(Did you mean validate\?\)\n/);
    assert.match(await errorOf('status'), /\(Did you mean image-status\?\)/);
  });
});

describe('a command whose output cannot be written', () => {
  const source = ['--conditions=@nodepool-builder/source', '--input-type=module', '--eval'];
  const main = `import { main } from 'nodepool-builder'; process.exitCode = await main(process.argv.slice(1));`;
  for (const line of [
    '--help',
    '--version',
    'validate --help',
    'completion bash',
    'validate ../../../../examples/all-in-one/nodepool.yaml',
  ]) {
    it(`the command "${line}" whose output cannot be written fails with one line and an exit code`, () => {
      const outcome = spawnSync(process.execPath, [...source, main, '--', ...line.split(' ')], {
        cwd: import.meta.dirname,
        encoding: 'utf8',
        stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
      });
      assert.match(outcome.stderr, /^nodepool-builder: cannot write the output: ENOSPC.*; free space.*$/m);
      assert.doesNotMatch(outcome.stderr, /^ {4}at /m, 'no stack');
      assert.equal(outcome.status, 1);
    });
  }
});
