"""Training steps over torch-choice 1.0.7: models of what people choose, by batches of `fit`, by its wrapper, and by loops of one's own."""

from torch_choice.data import ChoiceDataset, JointDataset
from torch_choice.data.utils import create_data_loader
from torch_choice.model import ConditionalLogitModel, NestedLogitModel
from torch_choice.utils.run_helper_lightning import LightningModelWrapper

ROWS, USERS, ITEMS, SESSIONS = 240, 6, 4, 30


def choices(available=False, outside=False):
    picked = torch.randint(-1 if outside else 0, ITEMS, (ROWS,))
    more = {"item_availability": torch.ones(SESSIONS, ITEMS, dtype=torch.bool)} if available else {}
    return ChoiceDataset(
        item_index=picked,
        num_items=ITEMS,
        num_users=USERS,
        num_sessions=SESSIONS,
        user_index=torch.randint(0, USERS, (ROWS,)),
        session_index=torch.randint(0, SESSIONS, (ROWS,)),
        user_obs=torch.randn(USERS, 3),
        item_obs=torch.randn(ITEMS, 2),
        session_obs=torch.randn(SESSIONS, 2),
        itemsession_cost=torch.randn(SESSIONS, ITEMS, 2),
        useritem_obs=torch.randn(USERS, ITEMS, 2),
        **more,
    )


PLAIN = "(itemsession_cost|constant) + (session_obs|item) + (intercept|item)"
FULL = "(itemsession_cost|item-full) + (user_obs|item) + (intercept|item-full)"
USER = "(itemsession_cost|user) + (item_obs|user-item) + (useritem_obs|constant) + (intercept|user-item-full)"


def conditional(formula=PLAIN, data=choices, **more):
    dataset = data()
    return ConditionalLogitModel(formula=formula, dataset=dataset, num_items=ITEMS, num_users=USERS, **more), dataset


def nested_of_items(**more):
    """No feature of the nests, and the items' own."""
    items = choices()
    nests = ChoiceDataset(
        item_index=items.item_index.clone(), num_items=2, num_sessions=SESSIONS, session_index=items.session_index
    )
    model = NestedLogitModel(
        nest_to_item={0: [0, 1], 1: [2, 3]},
        nest_coef_variation_dict={},
        nest_num_param_dict={},
        item_coef_variation_dict={"itemsession_cost": "constant"},
        item_num_param_dict={"itemsession_cost": 2},
        **more,
    )
    return model, JointDataset(nest=nests, item=items)


def fitted(made, size=24, **more):
    """A step is a batch of `fit`."""

    def make():
        model, dataset = made()
        more.setdefault("num_epochs", 6)
        return loop(lambda: model.to(D).fit(dataset, batch_size=size, device=D, print_summary=False, **more))

    return make


STEPS["conditional"] = fitted(conditional)
STEPS["conditional_full"] = fitted(lambda: conditional(FULL))
STEPS["conditional_by_user"] = fitted(lambda: conditional(USER))
STEPS["conditional_available"] = fitted(lambda: conditional(data=lambda: choices(available=True)))
STEPS["conditional_outside"] = fitted(
    lambda: conditional(data=lambda: choices(outside=True), model_outside_option=True)
)
STEPS["conditional_l1"] = fitted(lambda: conditional(regularization="L1", regularization_weight=0.1))
STEPS["conditional_l2"] = fitted(lambda: conditional(regularization="L2", regularization_weight=0.1))
STEPS["conditional_sgd"] = fitted(conditional, model_optimizer="SGD")
STEPS["conditional_at_once"] = fitted(conditional, size=-1)
STEPS["conditional_lbfgs"] = fitted(conditional, model_optimizer="LBFGS", size=120)
STEPS["conditional_initialized"] = fitted(lambda: conditional(weight_initialization="uniform"), size=20)
STEPS["nested"] = fitted(nested_of_items)
STEPS["nested_shared_lambda"] = fitted(lambda: nested_of_items(shared_lambda=True))
STEPS["nested_l2"] = fitted(lambda: nested_of_items(regularization="L2", regularization_weight=0.1))
STEPS["nested_at_once"] = fitted(nested_of_items, size=-1)


def own(made, size=24):
    """A loop of one's own over the package's loader, of data that lie on the device."""

    def make():
        model, dataset = made()
        loader = create_data_loader(dataset.to(D), batch_size=size, shuffle=True)

        def loss(net):
            batch = next(iter(loader))
            label = batch["item"].item_index if isinstance(batch, dict) else batch.item_index
            return net.negative_log_likelihood(batch, label)

        return train(model, loss)

    return make


STEPS["own_loop"] = own(conditional)
STEPS["own_loop_by_user"] = own(lambda: conditional(USER))
STEPS["own_loop_nested"] = own(nested_of_items)


@step
def wrapped():
    """The module for Lightning, by the step that it calls."""
    model, dataset = conditional()
    module = LightningModelWrapper(model, 0.01, "Adam").to(D)
    module.log = module.log_dict = lambda *_, **__: None
    optimizer = module.configure_optimizers()
    loader = create_data_loader(dataset, batch_size=24, shuffle=True)

    def go():
        batch = next(iter(loader)).to(D)
        loss = module.training_step(batch, 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return go
