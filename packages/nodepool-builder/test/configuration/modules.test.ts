import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BaseImageBuilder, type BuilderModule, type ProviderModule } from '@nodepool-builder/image-builder';
import { NO_SERVICES } from '../../../../test/fixtures/builder-services.ts';
import { Modules } from '../../src/configuration/modules.ts';
import type { ModuleError } from '../../src/terms/module-error.ts';

class MyBuilder extends BaseImageBuilder {
  protected override createImage(): Promise<void> {
    return Promise.resolve();
  }
}

const SETTINGS = { type: 'object', properties: { tree: { type: 'string' } } } as const;

const BUILDER: BuilderModule<typeof SETTINGS> = {
  type: 'mine',
  settings: SETTINGS,
  create: (diskimage) => new MyBuilder(diskimage),
};

const PROVIDER: ProviderModule<typeof SETTINGS> = {
  type: 'mine',
  settings: SETTINGS,
  images: { open: () => assert.fail() },
};

test('added modules are available alongside those of nodepool-builder', () => {
  const modules = Modules.builtIn.with([BUILDER, PROVIDER]);
  assert.equal(modules.builders.get('mine'), BUILDER);
  assert.equal(modules.providers.get('mine'), PROVIDER);
  assert.ok(modules.builders.has('dib'));
  assert.equal(Modules.builtIn.builders.has('mine'), false, 'a set does not change');
});

test('a builder class becomes a module with the settings of dib', () => {
  const module = Modules.none.withBuilders({ mine: MyBuilder }).builders.get('mine');
  assert.ok(module);
  assert.equal(module.settings, Modules.builtIn.builders.get('dib')?.settings);
  const diskimage = { name: 'debian', formats: [] };
  const builder = module.create(diskimage, {}, NO_SERVICES);
  assert.ok(builder instanceof MyBuilder);
  assert.equal(builder.diskimage, diskimage);
});

test('a builder class with another builder’s type replaces it, and keeps its settings', () => {
  const { builders } = Modules.none.with([BUILDER, PROVIDER]).withBuilders({ mine: MyBuilder });
  assert.equal(builders.get('mine')?.settings, SETTINGS);
  assert.notEqual(builders.get('mine'), BUILDER);
  assert.equal(builders.size, 1);
});

test('a module whose type another module has is rejected', () => {
  const dib = { ...BUILDER, type: 'dib' };
  assert.throws(
    () => Modules.builtIn.with([dib]),
    wrong(/^module "dib" has the type of another builder; give it a type of its own$/),
  );
  assert.throws(() => Modules.none.with([PROVIDER, PROVIDER]), wrong(/another provider;/));
});

test('a provider with a key that means something else in another provider is rejected', () => {
  const settings = { type: 'object', properties: { directory: { type: 'integer' } } } as const;
  assert.throws(
    () => Modules.builtIn.with([{ ...PROVIDER, settings }]),
    wrong(/^module "mine" has the key "directory", which has other values in module "directory"; give it/),
  );
});

test('a builder’s key is rejected if another builder has it with another schema', () => {
  const settings = { type: 'object', properties: { elements: { type: 'string' } } } as const;
  assert.throws(
    () => Modules.builtIn.with([{ ...BUILDER, settings }]),
    wrong(/^module "mine" has the key "elements" of builder "dib" with another schema; choose another key$/),
  );
});

for (const [shape, module, reason] of [
  ['null', null, /is not an object/],
  ['a class', MyBuilder, /is not an object/],
  ['a list', [BUILDER], /is not an object/],
  ['no type', { ...BUILDER, type: undefined }, /has no "type"/],
  ['a type with a blank', { ...BUILDER, type: 'my own' }, /has no "type"/],
  ['no settings', { ...BUILDER, settings: undefined }, /^module "mine" has no "settings"/],
  ['settings of a list', { ...BUILDER, settings: { type: 'array' } }, /has no "settings"/],
  ['a builder and a provider', { ...BUILDER, ...PROVIDER }, /either "create", as a builder, or "images"/],
  ['nothing but a type', { type: 'mine', settings: SETTINGS }, /either "create", as a builder, or "images"/],
  [
    'images that nothing opens',
    { ...PROVIDER, images: {} },
    /"images" or "instances" without a function "open"/,
  ],
  ['an object as create', { ...BUILDER, create: {} }, /"create" that is not a function/],
  ['a check that is not a function', { ...BUILDER, check: true }, /"check" that is not a function/],
] as const) {
  test(`a module with an invalid shape is rejected: ${shape}`, () => {
    assert.throws(() => Modules.none.with([module]), wrong(reason));
  });
}

function wrong(message: RegExp): (error: ModuleError) => true {
  return (error) => {
    assert.equal(error.name, 'ModuleError');
    assert.match(error.message, message);
    return true;
  };
}
