import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { expandElements, findElements } from '../src/dib-elements.ts';

/** Creates elements, each with the lines of its `element-deps` and `element-provides`. */
async function createElements(
  t: TestContext,
  elements: Readonly<Record<string, readonly [deps?: string, provides?: string]>>,
): Promise<string> {
  const directory = await temporaryDirectory(t);
  for (const [name, [deps = '', provides = '']] of Object.entries(elements)) {
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, 'element-deps'), deps);
    await writeFile(join(directory, name, 'element-provides'), provides);
  }
  return directory;
}

test('the first directory in ELEMENTS_PATH counts, and a link to an element has its target’s name', async (t) => {
  const [one, two] = [
    await createElements(t, { a: [] }),
    await createElements(t, { a: [], b: [], 'c-1': [] }),
  ];
  await symlink('c-1', join(two, 'c'));
  await writeFile(join(two, 'README.md'), '');
  const found = await findElements([one, '/nonexistent', two]);
  assert.deepEqual(Object.fromEntries(found), {
    a: join(one, 'a'),
    b: join(two, 'b'),
    'c-1': join(two, 'c-1'),
  });
});

test('the files element-deps and element-provides are followed as disk-image-create does', async (t) => {
  const directory = await createElements(t, {
    base: [],
    distribution: ['init-system\npackages\n', 'operating-system\n'],
    packages: ['gone'],
    systemd: ['', 'init-system'],
    image: ['systemd\n\ndistribution'],
  });
  const { names, missing, conflicts, hasOperatingSystem } = await expandElements(
    ['image'],
    await findElements([directory]),
  );
  assert.deepEqual([...names].toSorted(), ['base', 'distribution', 'gone', 'image', 'packages', 'systemd']);
  assert.deepEqual([...missing], [['gone', 'packages']]);
  assert.deepEqual([conflicts.size, hasOperatingSystem], [0, true]);
});

test('elements conflict if they provide the same element, or one that the disk image names', async (t) => {
  const directory = await createElements(t, {
    base: [],
    one: ['', 'operating-system'],
    two: ['', 'operating-system\nthree'],
    three: [],
  });
  const elements = await findElements([directory]);
  const conflictsOf = async (...named: readonly string[]) =>
    Object.fromEntries((await expandElements(named, elements)).conflicts);
  assert.deepEqual(await conflictsOf('one', 'two'), { 'operating-system': 'one' });
  assert.deepEqual(await conflictsOf('two', 'three'), { three: 'two' });
  assert.equal((await expandElements(['three'], elements)).hasOperatingSystem, false);
});

test('the element vm without a block-device-* element gets a default one', async (t) => {
  const elements = await findElements([
    await createElements(t, {
      base: [],
      vm: ['block-device', 'operating-system'],
      'block-device-mbr': ['', 'block-device'],
      'block-device-efi': ['', 'block-device'],
      'block-device-gpt': ['', 'block-device'],
    }),
  ]);
  for (const named of [['vm'], ['vm', 'block-device-gpt']]) {
    const { missing, conflicts } = await expandElements(named, elements);
    assert.deepEqual([missing.size, conflicts.size], [0, 0], named.join());
  }
});
