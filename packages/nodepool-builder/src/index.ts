export { type MainOptions, main } from './commands/main.ts';
export type {
  Configuration,
  DiskImageConfiguration,
  ProviderConfiguration,
  ProviderImageConfiguration,
} from './configuration/configuration.ts';
export type { GearmanServer } from './configuration/gearman-server.ts';
export { type LoadedConfiguration, type LoadOptions, loadConfiguration } from './configuration/load.ts';
export { type Module, Modules } from './configuration/modules.ts';
export type { NodepoolBuilderOptions } from './daemon/builder-parts.ts';
export { NodepoolBuilder } from './daemon/nodepool-builder.ts';
export { ModuleError } from './terms/module-error.ts';
export { ConfigurationError, formatDiagnostic, type LocatedDiagnostic } from './yaml/diagnostic.ts';
