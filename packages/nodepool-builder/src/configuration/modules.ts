import { isDeepStrictEqual } from 'node:util';
import {
  type BaseImageBuilder,
  type BuilderModule,
  type BuilderServices,
  COMMAND_MODULE,
  DIB_MODULE,
  DIRECTORY_MODULE,
  type DiskImage,
  type ImageBuilderClass,
  ImageError,
  type ObjectSchema,
  type ProviderModule,
} from '@nodepool-builder/image-builder';
import { ON_INSTANCE_MODULE, QEMU_MODULE } from '@nodepool-builder/on-instance';
import { OPENSTACK_MODULE } from '@nodepool-builder/provider-openstack';
import { ZUUL_ARTIFACT_MODULE } from '@nodepool-builder/zuul-images';
import { ModuleError } from '../terms/module-error.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import { providerSchema } from './provider-schema.ts';

/** A builder or provider module. */
export type Module = BuilderModule | ProviderModule;

/** Default `builder` of a disk image. */
export const DEFAULT_BUILDER: string = DIB_MODULE.type;

/** The modules that come with nodepool-builder. */
const BUILT_IN: readonly Module[] = [
  DIB_MODULE,
  COMMAND_MODULE,
  ON_INSTANCE_MODULE,
  ZUUL_ARTIFACT_MODULE,
  OPENSTACK_MODULE,
  DIRECTORY_MODULE,
  QEMU_MODULE,
];

/**
 * Packages of this project that are only installed where needed, because the libraries of these clouds are large, by
 * the provider type that each exports.
 */
export const OPTIONAL_PACKAGES: Readonly<Record<string, string>> = {
  aws: '@nodepool-builder/provider-aws',
  azure: '@nodepool-builder/provider-azure',
  gce: '@nodepool-builder/provider-gce',
  oci: '@nodepool-builder/provider-oci',
  s3: '@nodepool-builder/provider-s3',
};

/** Providers that can be written on a command line, without a configuration file, by type. */
export const SHORT_FORMS: ReadonlyMap<
  string,
  { readonly placeholder: string; readonly settings: (text: string) => Readonly<Record<string, unknown>> }
> = new Map([
  [OPENSTACK_MODULE.type, { placeholder: 'CLOUD', settings: (cloud: string) => ({ cloud, rate: 0 }) }],
  [DIRECTORY_MODULE.type, { placeholder: 'PATH', settings: (directory: string) => ({ directory }) }],
]);

/** The builders and providers that a configuration can name. A set is immutable. */
export class Modules {
  /** The empty set. */
  static readonly none: Modules = new Modules([]);
  /** The modules that come with nodepool-builder. */
  static readonly builtIn: Modules = new Modules(BUILT_IN);

  /** Builder modules by `diskimages[].builder`. */
  readonly builders: ReadonlyMap<string, BuilderModule>;
  /** Provider modules by `providers[].type`. */
  readonly providers: ReadonlyMap<string, ProviderModule>;

  private constructor(modules: readonly Module[]) {
    this.builders = new Map(modules.filter(isBuilderModule).map((module) => [module.type, module]));
    const providers = modules.filter((module): module is ProviderModule => !isBuilderModule(module));
    this.providers = new Map(providers.map((module) => [module.type, module]));
  }

  /**
   * Returns this set with additional modules.
   *
   * @param modules of any shape, because they may come from unchecked JavaScript
   * @throws ModuleError for a wrong shape, or a type or a key that another module has
   */
  with(modules: Iterable<unknown>): Modules {
    return [...modules].reduce<Modules>((all, module) => all.add(module), this);
  }

  /**
   * Returns this set with additional builders. A class replaces the builder of the same type and keeps its settings. A
   * class with a new type has the settings of `dib`.
   */
  withBuilders(classes: Readonly<Record<string, ImageBuilderClass>>): Modules {
    const modules = Object.entries(classes).map(([type, Builder]) => {
      const replaced = this.builders.get(type) ?? { settings: DIB_MODULE.settings, type };
      return {
        ...replaced,
        create: (diskimage, values, services) => new Builder(diskimage, values as never, services),
      } satisfies BuilderModule;
    });
    return new Modules([...this.list(), ...modules]);
  }

  /**
   * Creates the builder of a disk image.
   *
   * @throws ImageError `builder-unknown`, `invalid-configuration`
   */
  createBuilder(
    diskimage: DiskImage & { readonly builder: string; readonly settings: unknown },
    services: BuilderServices,
  ): BaseImageBuilder {
    const { name, builder, settings } = diskimage;
    const module = this.builders.get(builder);
    if (module !== undefined) return module.create(diskimage, settings, services);
    const types = [...this.builders.keys()].join(', ');
    const reason = `disk image "${name}" has the unknown builder "${builder}"; use one of: ${types}`;
    throw new ImageError('builder-unknown', reason);
  }

  // Not #add and #list, because tsc then makes the static fields use the class before it is defined.
  private add(module: unknown): Modules {
    checkShape(module);
    const [taken, kind] = isBuilderModule(module)
      ? [this.builders, 'builder']
      : ([this.providers, 'provider'] as const);
    if (!taken.has(module.type)) {
      if (isBuilderModule(module)) this.checkKeys(module);
      const all = new Modules([...this.list(), module]);
      providerSchema(all); // throws if keys collide
      return all;
    }
    throw new ModuleError(
      `module "${module.type}" has the type of another ${kind}`,
      'give it a type of its own',
    );
  }

  /**
   * Checks that no other builder uses a key with another schema, because one schema checks all entries of `diskimages`.
   */
  private checkKeys({ type, entries, settings }: BuilderModule): void {
    if (entries?.section !== undefined) return;
    const shared = [...this.builders.values()].filter((other) => other.entries?.section === undefined);
    const { properties }: ObjectSchema = settings;
    for (const [key, schema] of Object.entries(properties)) {
      const other = shared.find((one) => {
        const known: ObjectSchema = one.settings;
        return Object.hasOwn(known.properties, key) && !isDeepStrictEqual(known.properties[key], schema);
      });
      if (other === undefined) continue;
      const reason = `module "${type}" has the key "${key}" of builder "${other.type}" with another schema`;
      throw new ModuleError(reason, 'choose another key');
    }
  }

  private list(): readonly Module[] {
    return [...this.builders.values(), ...this.providers.values()];
  }
}

function isBuilderModule(module: Module): module is BuilderModule {
  return 'create' in module && module.create !== undefined;
}

/** Pattern of a type, which is a value in YAML and part of error messages and file names. */
const TYPE = /^[a-z0-9][a-z0-9._-]*$/i;

/** Functions of a module, all of them optional. */
const FUNCTIONS = [
  'create',
  'check',
  'checkHost',
  'describe',
  'diagnose',
  'files',
  'prepare',
  'read',
  'start',
];

function checkShape(value: unknown): asserts value is Module {
  if (!isMapping(value)) throw wrongShape('a module', 'is not an object');
  const { type, settings } = value;
  if (typeof type !== 'string' || !TYPE.test(type)) {
    throw wrongShape('a module', 'has no "type", a string of letters, digits, ".", "_" and "-"');
  }
  const subject = `module "${type}"`;
  if (!isMapping(settings) || settings.type !== 'object' || !isMapping(settings.properties)) {
    throw wrongShape(subject, 'has no "settings", a JSON Schema with type "object" and "properties"');
  }
  const wrong = FUNCTIONS.find((name) => value[name] !== undefined && typeof value[name] !== 'function');
  if (wrong !== undefined) throw wrongShape(subject, `has a "${wrong}" that is not a function`);
  const isBuilder = value.create !== undefined;
  const supports = [value.images, value.instances].filter((support) => support !== undefined);
  if (!supports.every((support) => isMapping(support) && typeof support.open === 'function')) {
    throw wrongShape(subject, 'has "images" or "instances" without a function "open"');
  }
  const { section } = isMapping(value.entries) ? value.entries : {};
  if (section !== undefined && !(Array.isArray(settings.required) && settings.required.length > 0)) {
    throw wrongShape(subject, 'has a section of entries, but its "settings" have no required key');
  }
  if (isBuilder === supports.length > 0) {
    throw wrongShape(
      subject,
      'must have either "create", as a builder, or "images" or "instances", as a provider',
    );
  }
}

function wrongShape(subject: string, reason: string): ModuleError {
  return new ModuleError(`${subject} ${reason}`, 'see BuilderModule and ProviderModule of image-builder');
}
