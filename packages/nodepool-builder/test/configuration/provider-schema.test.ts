import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { DIRECTORY_MODULE, type ProviderModule, type SettingsSchema } from '@nodepool-builder/image-builder';
import { OPENSTACK_MODULE } from '@nodepool-builder/provider-openstack';
import { FakeImageProvider } from '../../../../test/doubles/fake-image-provider.ts';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { loadConfiguration } from '../../src/configuration/load.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { providerSchema } from '../../src/configuration/provider-schema.ts';
import { ConfigurationError, formatDiagnostic, type LocatedDiagnostic } from '../../src/yaml/diagnostic.ts';

/** Creates a module with images. */
function moduleOf(
  type: string,
  properties: Readonly<Record<string, SettingsSchema>>,
  more: Partial<ProviderModule> = {},
): ProviderModule {
  return {
    type,
    settings: { type: 'object', description: 'a test', properties },
    images: { open: () => new FakeImageProvider() },
    ...more,
  };
}

function byType(modules: readonly ProviderModule[]): Parameters<typeof providerSchema>[0] {
  return { builders: new Map(), providers: new Map(modules.map((module) => [module.type, module])) };
}

/** Returns the diagnostics of an entry, whether it is rejected or not. */
async function diagnosticsOf(t: TestContext, entry: string, ...modules: ProviderModule[]): Promise<string[]> {
  const directory = temporaryDirectory(t);
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\nproviders:\n  - {name: p, images: [], ${entry}}\n`);
  const diagnostics = await loadConfiguration(file, {
    modules: Modules.none.with([OPENSTACK_MODULE, DIRECTORY_MODULE, ...modules]),
    place: { env: {}, cwd: directory, home: directory },
  }).then(
    ({ warnings }): readonly LocatedDiagnostic[] => warnings,
    (error: unknown) =>
      error instanceof ConfigurationError ? error.diagnostics : assert.fail(String(error)),
  );
  return diagnostics.map((diagnostic) => formatDiagnostic('', diagnostic));
}

describe('the schema of providers', () => {
  it('the provider schema has each module’s keys, described with its type, between the common keys', () => {
    const region = { type: 'string', description: 'Name of a region.' } as const;
    const { properties = {} } = providerSchema(
      byType([OPENSTACK_MODULE, moduleOf('a', { region }), moduleOf('b', { region })]),
    );
    const keys = Object.keys(properties);
    assert.deepEqual(keys.slice(0, 4), ['name', 'type', 'image-type', 'cloud']);
    assert.ok(keys.indexOf('region') < keys.indexOf('template-hostname'));
    assert.deepEqual(properties.region, {
      type: 'string',
      description: 'For `type: a`: Name of a region. For `type: b`: Name of a region.',
    });
    assert.deepEqual(properties.type?.enum, ['openstack', 'a', 'b']);
    assert.match(String(properties.type?.description), /`a`: a test; `b`: a test\.$/);
  });

  it('the provider schema rejects two modules whose values for one key differ', () => {
    const modules = [
      moduleOf('a', { zone: { type: 'string' } }),
      moduleOf('b', { zone: { type: 'integer' } }),
    ];
    assert.throws(
      () => providerSchema(byType(modules)),
      /module "b" has the key "zone", which has other values in module "a"; give it another name/,
    );
  });

  it('the provider schema rejects a module with a key that all providers have', () => {
    assert.throws(
      () => providerSchema(byType([moduleOf('a', { pause: { type: 'boolean' } })])),
      /module "a" has the key "pause", which all providers have; give it another name/,
    );
  });
});

describe('an entry of a module', () => {
  const zone = moduleOf(
    'vm',
    { zone: { type: 'string', minLength: 1 } },
    {
      settings: {
        type: 'object',
        required: ['zone'],
        properties: { zone: { type: 'string', minLength: 1 } },
      },
    },
  );

  it('a provider must have the keys that its type requires', async (t) => {
    assert.deepEqual(await diagnosticsOf(t, 'type: vm', zone), [
      ':3:5: providers[0] lacks the key "zone", which type: vm needs; add "zone: …"',
    ]);
  });

  it('a provider may have another type’s keys, which are checked but not used', async (t) => {
    assert.deepEqual(await diagnosticsOf(t, 'type: vm, zone: a, rate: 1, directory: /p', zone), []);
    assert.deepEqual(await diagnosticsOf(t, 'type: directory, directory: /p, zone: 5', zone), [
      ':3:59: providers[0].zone must be a string, but is a number; put it in quotes',
    ]);
  });

  it('a provider with an unknown key or an unknown type is reported', async (t) => {
    assert.deepEqual(await diagnosticsOf(t, 'type: vm, zone: a, zome: b', zone), [
      ':3:46: warning: providers[0] has the unknown key "zome"; it is ignored; did you mean "zone"?',
    ]);
    assert.deepEqual(await diagnosticsOf(t, 'type: other', zone), [
      ':3:27: providers[0].type is "other"; use one of openstack, directory, vm',
    ]);
  });

  it('a provider is checked by its module, with defaults filled in and paths absolute', async (t) => {
    const seen: unknown[] = [];
    const strict = moduleOf(
      'strict',
      { size: { type: 'integer', default: 3 }, key: { type: 'string', format: 'path' } },
      {
        *check({ name: _, ...entry }) {
          seen.push({ ...entry });
          yield { pointer: '/key', severity: 'warning', reason: 'is old', remedy: 'renew it' } as const;
        },
      },
    );
    assert.deepEqual(await diagnosticsOf(t, 'type: strict, key: /k', strict), [
      ':3:41: warning: providers[0].key is old; renew it',
    ]);
    const common = {
      'template-hostname': 'template-{image.name}-{timestamp}',
      'compress-qcow2': false,
      pause: false,
    };
    assert.deepEqual(seen, [{ size: 3, key: '/k', ...common, images: [] }]);
  });

  it('a provider whose preparation fails causes a warning', async (t) => {
    const broken = moduleOf('broken', {}, { prepare: () => Promise.reject(new Error('no credentials')) });
    assert.deepEqual(await diagnosticsOf(t, 'type: broken', broken), [
      ':3:5: warning: providers[0]: no credentials; until then uploads to it fail',
    ]);
  });
});
