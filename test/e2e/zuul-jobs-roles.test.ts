// Only in test:all: it needs Ansible.
import assert from 'node:assert/strict';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { load } from 'js-yaml';
import { runAnsible, ZUUL_JOBS } from '../fixtures/ansible-playbook.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const ROLES = join(ZUUL_JOBS, 'roles');

test('ansible-lint finds nothing in the roles and playbooks for Zuul', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'ansible-lint-'));
  undoAfter(t, () => rm(home, { recursive: true, force: true }));
  const copy = join(home, 'zuul-jobs');
  await cp(ZUUL_JOBS, copy, { recursive: true }); // it writes a cache next to the checked files
  await runAnsible('ansible-lint', ['--nocolor', '-q'], { HOME: home }, copy);
});

for (const role of await readdir(ROLES)) {
  test(`the README, the defaults and the argument specification of ${role} have the same variables`, async () => {
    const read = (path: string): Promise<string> => readFile(join(ROLES, role, path), 'utf8');
    const { argument_specs: specification } = load(await read('meta/argument_specs.yaml')) as {
      argument_specs: { main: { options: Record<string, { required?: boolean }> } };
    };
    const options = Object.entries(specification.main.options);
    const optional = options.filter(([, { required }]) => required !== true);
    const [variables = ''] = (await read('README.rst')).split('**Result**');
    const documented = [...variables.matchAll(/zuul:rolevar:: (\w+)/g)].map(([, name]) => name);
    assert.deepEqual(new Set(documented), new Set(options.map(([name]) => name)));
    const defaults = Object.keys(load(await read('defaults/main.yaml')) as object);
    assert.deepEqual(new Set(defaults), new Set(optional.map(([name]) => name)));
  });
}
