import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgram } from '../../packages/nodepool-builder/src/commands/main.ts';
import { codeBlocks, readPage } from './markdown.ts';

const page = await readPage('docs/ci-jobs.md');

test('docs/ci-jobs.md lists the commands for CI jobs that --help lists', async () => {
  const [, table = ''] = /^\| command \|.*\n\| --- .*\n((?:\|.*\n)+)/m.exec(page) ?? [];
  const listed = [...table.matchAll(/^\| `([a-z]+)/gm)];
  const group = (await createProgram()).commands.filter((command) =>
    command.helpGroup().startsWith('In a CI job'),
  );
  assert.deepEqual(
    listed.map(([, name]) => name),
    group.map((command) => command.name()),
  );
});

test('nodepool-builder accepts each command line of docs/ci-jobs.md', async () => {
  const lines = codeBlocks(page, 'sh').flatMap((block) => block.trim().split('\n'));
  assert.ok(lines.length > 5);
  for (const line of lines) {
    const [program, ...args] = line.split(' ');
    assert.equal(program, 'nodepool-builder');
    const runs: string[] = [];
    const parser = await createProgram();
    for (const command of parser.commands)
      command.exitOverride().action(() => void runs.push(command.name()));
    await parser.parseAsync(args, { from: 'user' });
    assert.deepEqual(runs, [args[0]], line);
  }
});
