import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatDiagnostic } from '../../src/yaml/diagnostic.ts';
import { load } from './load-text.ts';

describe('files that the Python builder accepted', () => {
  it('a duplicate key or name is accepted with a warning, and the later one counts', async () => {
    const { configuration, warnings } = await load(`images-dir: /i
images-dir: /j
diskimages:
  - name: a
    release: 1
  - name: a
    release: 2
    env-vars: {A: '1', A: '2'}
providers:
  - {name: p, type: directory, directory: /p, images: []}
  - {name: p, type: directory, directory: /q, images: [{name: n, diskimage: a}, {name: n}]}
`);
    assert.equal(configuration['images-dir'], '/j');
    assert.deepEqual(
      configuration.diskimages.map(({ release, envVars, formats }) => ({ release, envVars, formats })),
      [{ release: '2', envVars: { A: '2' }, formats: [] }],
    );
    assert.deepEqual(
      configuration.providers.map((provider) => ({
        path: provider.entry.directory,
        images: provider.entry.images,
      })),
      [{ path: '/q', images: [{ name: 'n', pause: false, meta: {} }] }],
    );
    assert.deepEqual(
      warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
      [
        'nodepool.yaml:2:1: warning: the key "images-dir" is defined twice; this one counts; remove one of the two',
        'nodepool.yaml:8:24: warning: the key "A" is defined twice; this one counts; remove one of the two',
        'nodepool.yaml:6:5: warning: diskimages[1].name "a" is already used on line 4; this one counts; rename or remove one of the two',
        'nodepool.yaml:11:6: warning: providers[1].name "p" is already used on line 10; this one counts; rename or remove one of the two',
        'nodepool.yaml:11:82: warning: providers[1].images[1].name "n" is already used on line 11; this one counts; rename or remove one of the two',
      ],
    );
  });

  it('metadata beyond its limits is sent, though the Python builder dropped it', async () => {
    const long = 'x'.repeat(256);
    const { configuration, warnings } = await load(`images-dir: /i
providers:
  - name: p
    type: directory
    directory: /p
    images:
      - {name: a, meta: {a: 1.0, b: 2.5, c: null, d: yes, e: 2016-05-01, f: 0x10, g: ''}}
      - {name: b, meta: {long: ${long}}}
`);
    assert.deepEqual(
      configuration.providers[0]?.entry.images.map(({ meta }) => meta),
      [{ a: '1.0', b: '2.5', d: 'True', e: '2016-05-01', f: '16', g: '' }, { long }],
    );
    assert.deepEqual(
      warnings.map((diagnostic) => formatDiagnostic('nodepool.yaml', diagnostic)),
      [
        'nodepool.yaml:7:19: warning: providers[0].images[0].meta has more than 5 entries; it is sent unchanged, and the cloud may reject it',
        'nodepool.yaml:8:19: warning: providers[0].images[1].meta has over 255 characters in "long"; it is sent unchanged, and the cloud may reject it',
      ],
    );
  });

  it('a name or release may be a number in YAML, also in a merge or an alias', async () => {
    const { configuration } = await load(`images-dir: /i
base: &base {release: 15.0, elements: [vm]}
properties: &properties {version: 22.10, built: 2016-05-01, id: 12345678901234567890}
diskimages:
  - {<<: *base, name: merged}
  - {<<: [{rebuild-age: "3_600"}, *base], name: 20.10}
  - {name: yes, parent: 20.10, release: &one 1.0e+1}
  - {name: aliased, release: *one}
zuul-images:
  15.0: {api-url: https://zuul.example.org/t/t, job: j, project: p, pipelines: [q], artifacts: [{format: raw, type: r}], keep: "3"}
providers:
  - name: 010
    type: directory
    directory: /p
    max-servers: "5"
    images:
      - {name: 1.0, diskimage: 20.10, meta: *properties}
      - {name: b, diskimage: yes, meta: {<<: *properties, version: 1_0}}
`);
    assert.deepEqual(
      configuration.diskimages.map(({ name, release, keep }) => [name, release, keep]),
      [
        ['merged', '15.0', 2],
        ['20.1', '15.0', 2],
        ['True', '10.0', 2],
        ['aliased', '10.0', 2],
        ['15.0', undefined, 3],
      ],
    );
    const [provider] = configuration.providers;
    assert.equal(provider?.name, '8');
    const properties = { version: '22.1', built: '2016-05-01', id: '12345678901234567890' };
    assert.deepEqual(
      provider?.entry.images.map(({ name, diskimage, meta }) => [name, diskimage, meta]),
      [
        ['1.0', '20.1', properties],
        ['b', 'True', { ...properties, version: '10' }],
      ],
    );
  });

  it('a number may be in quotes where Python converts it', async () => {
    const { configuration } = await load(`images-dir: /i
gearman-servers: [{host: a, port: "4730"}, {host: b, port: " 47_31 "}]
build-log-retention: "3"
build-cache-size: ".5"
diskimages: [{name: a, build-timeout: "60.5", rebuild-age: 1e3, keep: '1'}]
providers: [{name: p, rate: "0.5", api-timeout: "30", images: []}]
manager: {retry-delay: "1_0.5"}
`);
    assert.deepEqual(
      configuration['gearman-servers'].map(({ port }) => port),
      [4730, 4731],
    );
    assert.equal(configuration['build-log-retention'], 3);
    assert.equal(configuration['build-cache-size'], 0.5);
    assert.equal(configuration.manager['retry-delay'], 10.5);
    const [diskimage] = configuration.diskimages;
    assert.deepEqual([diskimage?.buildTimeout, diskimage?.rebuildAge, diskimage?.keep], [60.5, 1000, 1]);
    const entry = configuration.providers[0]?.entry;
    assert.deepEqual([entry?.rate, entry?.['api-timeout']], [0.5, 30]);
  });

  it('a key may have an empty value where the Python builder accepted it', async () => {
    const { configuration } = await load(`images-dir: /i
elements-dir:
script-dir:
diskimages: [{name: a, elements: , release: , env-vars: , formats: }]
providers:
  - name: p
    type: directory
    directory: /p
    image-type:
    region-name:
    images: [{name: n, diskimage: , meta: }]
`);
    const [diskimage] = configuration.diskimages;
    assert.equal(diskimage?.elementsDir, undefined);
    assert.equal(diskimage?.scriptDir, undefined);
    assert.equal(diskimage?.release, '');
    assert.equal(configuration.providers[0]?.imageType, 'qcow2');
  });
});
